// SPDX-License-Identifier: Apache-2.0
#pragma once

// Typed readers over a YAML tree. A Field is one place in the tree by its path ("scis[0].timers.embryonic"),
// whether or not something stands there. Each reader leaves `out` as it is when the field is absent, so that
// defaults live in the struct that is filled; a value of the wrong type or out of range is reported:
//     site.yaml:31:13: scis[0].timers.embryonic: expected a duration such as 300s or 200ms, got "5"
// All errors of one file go to one FieldErrors, which keeps the first by its place; what is missing comes after
// what is wrong, as a slip in a key makes both.
//
// Scalars are read strictly: integers in decimal, `true` or `false`, durations and rates with their unit, and
// numbers without quotes. A key with nothing behind it is an error, not an absent key.
//
// The tree and the FieldErrors must outlive the fields. Set-up only; one thread.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "common/net.h"
#include "common/yaml_tree.h"

namespace margay {

class FieldErrors {
 public:
  explicit FieldErrors(std::string file) : file_(std::move(file)) {}

  void add(YamlPlace place, const std::string& message) { keep_first(wrong_, place, message); }
  void add_missing(YamlPlace place, const std::string& message) { keep_first(missing_, place, message); }
  const std::optional<Error>& first() const { return wrong_.error ? wrong_.error : missing_.error; }

 private:
  struct First {
    YamlPlace place;
    std::optional<Error> error;
  };
  void keep_first(First& first, YamlPlace place, const std::string& message);

  std::string file_;
  First wrong_, missing_;
};

class Field {
 public:
  Field(const YamlNode& root, FieldErrors& errors) : node_(&root), place_(root.place), errors_(&errors) {}

  // What stands below; an absent field, with the place of this one, where nothing does.
  Field operator[](std::string_view key) const;
  Field operator[](size_t index) const;  // of a list; of a map in the file's order

  bool present() const { return node_ != nullptr; }
  // Of a list or map; 0 for everything else.
  size_t size() const { return node_ == nullptr ? 0 : node_->children.size(); }
  const YamlNode* node() const { return node_; }
  const std::string& path() const { return path_; }

  // "file:line:column: path: message"
  void fail(const std::string& message) const;
  void fail_at(YamlPlace place, const std::string& message) const;
  // "... expected WHAT, got ..."
  void fail_expected(const std::string& what) const;
  // The same, at the key that holds this field.
  void fail_key(const std::string& message) const;
  // "... is missing", for a field that is absent.
  void fail_missing(const std::string& message = "is missing") const;

 private:
  Field(const YamlNode* node, YamlPlace place, std::string path, FieldErrors* errors)
      : node_(node), place_(place), path_(std::move(path)), errors_(errors) {}

  std::string at_path(const std::string& message) const { return path_.empty() ? message : path_ + ": " + message; }

  const YamlNode* node_;
  YamlPlace place_;
  std::string path_;
  FieldErrors* errors_;
};

// Each of these says whether the field is present and of that kind; a wrong kind is reported.
bool is_map(const Field& field);
bool is_list(const Field& field);
// Reports a field that is absent; true when it is present.
bool require(const Field& field);

// Reports every key of a map that is not in `known`, with the nearest one that is.
void refuse_unknown_keys(const Field& map, std::span<const std::string_view> known);
inline void refuse_unknown_keys(const Field& map, std::initializer_list<std::string_view> known) {
  refuse_unknown_keys(map, std::span(known.begin(), known.size()));
}
// The one of `known` (not empty) with the fewest letters to change.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

// Readers: true when `out` was set.

// Text without control characters, of 1 to bytes_max bytes.
bool read_text(const Field& field, size_t bytes_max, std::string& out);
bool read_bool(const Field& field, bool& out);
bool read_integer(const Field& field, uint64_t min, uint64_t max, uint64_t& out);
template <class T>
bool read_integer(const Field& field, uint64_t min, uint64_t max, T& out) {
  static_assert(std::is_unsigned_v<T>);
  uint64_t wide = 0;
  if (!read_integer(field, min, max, wide)) return false;
  out = static_cast<T>(wide);
  return true;
}
// A decimal number such as 0.5.
bool read_number(const Field& field, double min, double max, double& out);
// `50%` as 0.5; the bounds are in per cent.
bool read_percentage(const Field& field, double min, double max, double& out);
// `200ms`, `300s`, `10m`, `1h` in nanoseconds.
bool read_duration(const Field& field, uint64_t min_ns, uint64_t max_ns, uint64_t& out_ns);
// The same the other way round, in the largest unit that leaves a whole number.
std::string format_duration(uint64_t nanoseconds);
// `200/s`: a whole number a second, at least 1.
bool read_rate(const Field& field, uint64_t& out_per_second);
// A unicast address, not all zeros.
bool read_mac(const Field& field, MacAddress& out);
bool read_mac(const Field& field, std::optional<MacAddress>& out);
// An address that may be a host's.
bool read_ip(const Field& field, IpAddress& out);
// Any address with a prefix length.
bool read_prefix(const Field& field, Prefix& out);

// One of a table of words.
template <class Enum>
struct Word {
  std::string_view name;
  Enum value;
};
// Reports a word that is not in `names`, with all that are; else its index.
std::optional<size_t> read_word(const Field& field, std::span<const std::string_view> names);

template <class Enum, size_t N>
bool read_enum(const Field& field, const Word<Enum> (&words)[N], Enum& out) {
  std::string_view names[N];
  for (size_t i = 0; i < N; ++i) names[i] = words[i].name;
  const auto index = read_word(field, names);
  if (index) out = words[*index].value;
  return index.has_value();
}

}  // namespace margay
