// SPDX-License-Identifier: Apache-2.0
#pragma once

// YAML text as a plain tree in which every value knows its line and column, so that an error can name its place.
//
// A subset on purpose: one document of UTF-8 text, maps, lists and scalars. Anchors, aliases, tags, keys that are
// not plain text, a key that stands twice in one map, nesting deeper than kYamlDepthMax and more than
// kYamlBytesMax bytes are errors. Scalars stay text: what they mean is for the reader to say (common/yaml_fields.h).
//
// Every error is one line, "file:line:column: what is wrong". No exception leaves these functions, whatever the
// input; recursion is bounded by kYamlDepthMax. Set-up only; any thread.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"

namespace margay {

inline constexpr size_t kYamlBytesMax = size_t{16} << 20;  // a C-SMA may list 100,000 SCIs
inline constexpr size_t kYamlDepthMax = 32;

struct YamlPlace {
  uint32_t line = 1, column = 1;  // from 1; the column counts bytes

  friend auto operator<=>(const YamlPlace&, const YamlPlace&) = default;
};

struct YamlNode {
  enum class Kind : uint8_t { kNothing, kText, kList, kMap };

  Kind kind = Kind::kNothing;
  bool quoted = false;  // a scalar in quotes or a block: text for certain
  YamlPlace place;      // of the value; of the key where nothing stands behind it
  YamlPlace key_place;
  std::string key;                 // in a map
  std::string text;                // of a scalar
  std::vector<YamlNode> children;  // in the file's order

  // The child of a map by its key, or null.
  const YamlNode* find(std::string_view name) const;
};

// `file` is what errors call the text. An empty text is a node of kind kNothing.
Result<YamlNode> parse_yaml(std::string_view text, const std::string& file);

// The text of a file of at most kYamlBytesMax bytes. A pipe is read to its end, but its writer is waited for in bounds.
Result<std::string> read_yaml_text(const std::string& path);

// "file:line:column: message"
Error yaml_error(const std::string& file, YamlPlace place, const std::string& message);

}  // namespace margay
