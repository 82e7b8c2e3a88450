// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the site file: what both planes need of it into a SiteConfig, and the rest for unknown keys and syntax only.
// docs/site-file.md lists the keys.
//
// What is returned is complete and consistent: every default filled in, names unique, addresses reachable. A key
// or a word whose feature this build does not have is an error that says so. An error is one line,
// "file:line:column: key: what is wrong and what was expected"; of several, the first in the file; what is
// missing comes after what is wrong, and what takes two values to see after what one alone shows.
//
// Set-up only; any thread; no exception leaves these functions, whatever the file holds.

#include <string>
#include <string_view>

#include "common/result.h"
#include "common/site/site_config.h"
#include "common/yaml_tree.h"

namespace margay {

Result<SiteConfig> read_site_file(const std::string& path);

// `file` is what errors call the text.
Result<SiteConfig> parse_site(std::string_view text, const std::string& file);

// The same of a text that is a tree already, for a program that reads further keys of it.
Result<SiteConfig> read_site(const YamlNode& tree, const std::string& file);

// For a program that runs no SCI: a file need not tell of any. What it then holds is checked for unknown keys and
// syntax.
bool tells_of_scis(const YamlNode& tree);
Result<SiteConfig> read_site_without_scis(const YamlNode& tree, const std::string& file);

}  // namespace margay
