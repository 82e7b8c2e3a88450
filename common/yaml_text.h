// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is checked of a text before it goes to the YAML parser: that it is not too long, that it is UTF-8 without
// control characters, and that its brackets do not pile up (the parser keeps everything after an open bracket in
// memory, some 200 bytes a byte). Any thread.

#include <optional>
#include <string>
#include <string_view>

#include "common/yaml_tree.h"

namespace margay {

struct YamlFault {
  YamlPlace place;
  std::string message;
};

// The first fault of the text, or nothing.
std::optional<YamlFault> find_fault(std::string_view text);

// Text from a file as it may stand within an error: in quotes, escaped, cut after 60 bytes.
std::string in_quotes(std::string_view text);

}  // namespace margay
