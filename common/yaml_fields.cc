// SPDX-License-Identifier: Apache-2.0
#include "common/yaml_fields.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <vector>

#include "common/yaml_text.h"

namespace margay {
namespace {

constexpr uint64_t kNanosecondsPerMillisecond = 1'000'000;

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNothing:
      return "nothing";
    case YamlNode::Kind::kText:
      return in_quotes(node.text);
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
  }
  return {};
}

// The scalar's text; any other kind is reported as not being `what`.
const std::string* scalar(const Field& field, const std::string& what) {
  if (!field.present()) return nullptr;
  if (field.node()->kind == YamlNode::Kind::kText) return &field.node()->text;
  field.fail_expected(what);
  return nullptr;
}

// The same for numbers, which stand without quotes.
const std::string* plain_scalar(const Field& field, const std::string& what) {
  const std::string* text = scalar(field, what);
  if (text == nullptr || !field.node()->quoted) return text;
  field.fail_expected(what + " without quotes");
  return nullptr;
}

// Digits alone, below 2^64.
std::optional<uint64_t> digits(std::string_view text) {
  uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

// Digits with at most one point between them: no sign, exponent, "inf" or "nan".
std::optional<double> decimal(std::string_view text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool shape = !text.empty() && text.size() <= 32 && is_digit(text.front()) && is_digit(text.back()) &&
                     std::count(text.begin(), text.end(), '.') <= 1 &&
                     std::all_of(text.begin(), text.end(), [&](char c) { return is_digit(c) || c == '.'; });
  if (!shape) return std::nullopt;
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

// 0.5 as "0.5", 1 as "1".
std::string shortest(double value) {
  std::array<char, 32> buffer;
  const auto [stop, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return error == std::errc{} ? std::string(buffer.data(), stop) : std::string();
}

struct Unit {
  std::string_view name;
  uint64_t nanoseconds;
};
constexpr Unit kUnits[] = {{"ms", kNanosecondsPerMillisecond},
                           {"s", 1000 * kNanosecondsPerMillisecond},
                           {"m", 60'000 * kNanosecondsPerMillisecond},
                           {"h", 3'600'000 * kNanosecondsPerMillisecond}};

std::optional<uint64_t> duration(std::string_view text) {
  const size_t unit_at = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto count = digits(text.substr(0, unit_at));
  const auto unit =
      std::find_if(std::begin(kUnits), std::end(kUnits), [&](const Unit& u) { return u.name == text.substr(unit_at); });
  if (!count || unit == std::end(kUnits) || *count > UINT64_MAX / unit->nanoseconds) return std::nullopt;
  return *count * unit->nanoseconds;
}

// Levenshtein's distance, by rows.
size_t edits(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t change = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

// Reports what a parser of common/net.h says.
template <class T>
bool read_parsed(const Field& field, const std::string& what, Result<T> (*parse)(std::string_view), T& out) {
  const std::string* text = scalar(field, what);
  if (text == nullptr) return false;
  const auto value = text->size() <= 64 ? parse(*text) : Error{};
  if (!value) {
    field.fail_expected(what);
    return false;
  }
  out = *value;
  return true;
}

}  // namespace

void FieldErrors::keep_first(First& first, YamlPlace place, const std::string& message) {
  if (first.error && first.place <= place) return;
  first = {place, yaml_error(file_, place, message)};
}

Field Field::operator[](std::string_view key) const {
  std::string path = path_.empty() ? std::string(key) : path_ + '.' + std::string(key);
  const YamlNode* child = node_ == nullptr ? nullptr : node_->find(key);
  return Field(child, child == nullptr ? place_ : child->place, std::move(path), errors_);
}

Field Field::operator[](size_t index) const {
  const YamlNode* child = index < size() ? &node_->children[index] : nullptr;
  const bool has_key = child != nullptr && node_->kind == YamlNode::Kind::kMap;
  const std::string name = has_key ? in_quotes(child->key) : std::to_string(index);
  return Field(child, child == nullptr ? place_ : child->place, path_ + '[' + name + ']', errors_);
}

void Field::fail_at(YamlPlace place, const std::string& message) const { errors_->add(place, at_path(message)); }

void Field::fail(const std::string& message) const { fail_at(place_, message); }

void Field::fail_expected(const std::string& what) const {
  fail("expected " + what + ", got " + (node_ == nullptr ? "nothing" : describe(*node_)));
}

void Field::fail_key(const std::string& message) const {
  fail_at(node_ != nullptr && !node_->key.empty() ? node_->key_place : place_, message);
}

void Field::fail_missing(const std::string& message) const { errors_->add_missing(place_, at_path(message)); }

bool is_map(const Field& field) {
  if (!field.present()) return false;
  if (field.node()->kind == YamlNode::Kind::kMap) return true;
  field.fail_expected("a map");
  return false;
}

bool is_list(const Field& field) {
  if (!field.present()) return false;
  if (field.node()->kind == YamlNode::Kind::kList) return true;
  field.fail_expected("a list");
  return false;
}

bool require(const Field& field) {
  if (!field.present()) field.fail_missing();
  return field.present();
}

void refuse_unknown_keys(const Field& map, std::span<const std::string_view> known) {
  if (map.node() == nullptr || map.node()->kind != YamlNode::Kind::kMap) return;
  for (size_t i = 0; i < map.size(); ++i) {
    const std::string& key = map.node()->children[i].key;
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    map.fail_at(map.node()->children[i].key_place, "unknown key " + in_quotes(key) + ", the nearest known one is \"" +
                                                       std::string(nearest(key, known)) + '"');
    return;  // those that follow stand later in the file
  }
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  // Longer words cannot be a slip of the hand, and distance is quadratic.
  const std::string_view start = word.substr(0, 64);
  return *std::min_element(known.begin(), known.end(),
                           [&](std::string_view a, std::string_view b) { return edits(start, a) < edits(start, b); });
}

bool read_text(const Field& field, size_t bytes_max, std::string& out) {
  const std::string what = "text of 1 to " + std::to_string(bytes_max) + " bytes";
  const std::string* text = scalar(field, what);
  if (text == nullptr) return false;
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (text->empty() || text->size() > bytes_max) {
    field.fail_expected(what);
  } else if (std::any_of(text->begin(), text->end(), is_control)) {
    field.fail_expected("text without control characters");
  } else {
    out = *text;
    return true;
  }
  return false;
}

bool read_bool(const Field& field, bool& out) {
  const std::string what = "true or false";
  const std::string* text = plain_scalar(field, what);
  if (text == nullptr) return false;
  if (*text != "true" && *text != "false") {
    field.fail_expected(what);
    return false;
  }
  out = *text == "true";
  return true;
}

bool read_integer(const Field& field, uint64_t min, uint64_t max, uint64_t& out) {
  const std::string what = "an integer from " + std::to_string(min) + " to " + std::to_string(max);
  const std::string* text = plain_scalar(field, what);
  if (text == nullptr) return false;
  const auto value = digits(*text);
  if (!value || *value < min || *value > max) {
    field.fail_expected(what);
    return false;
  }
  out = *value;
  return true;
}

bool read_number(const Field& field, double min, double max, double& out) {
  const std::string what = "a number from " + shortest(min) + " to " + shortest(max);
  const std::string* text = plain_scalar(field, what);
  if (text == nullptr) return false;
  const auto value = decimal(*text);
  if (!value || *value < min || *value > max) {
    field.fail_expected(what);
    return false;
  }
  out = *value;
  return true;
}

bool read_percentage(const Field& field, double min, double max, double& out) {
  const std::string what = "a percentage from " + shortest(min) + "% to " + shortest(max) + '%';
  const std::string* text = scalar(field, what);
  if (text == nullptr) return false;
  const std::string_view number = std::string_view(*text).substr(0, text->empty() ? 0 : text->size() - 1);
  const auto value = text->ends_with('%') ? decimal(number) : std::nullopt;
  if (!value || *value < min || *value > max) {
    field.fail_expected(what);
    return false;
  }
  out = *value / 100;
  return true;
}

bool read_duration(const Field& field, uint64_t min_ns, uint64_t max_ns, uint64_t& out_ns) {
  const std::string what = "a duration such as 300s or 200ms";
  const std::string* text = scalar(field, what);
  if (text == nullptr) return false;
  const auto value = duration(*text);
  if (!value) {
    field.fail_expected(what);
    return false;
  }
  if (*value < min_ns || *value > max_ns) {
    field.fail_expected("a duration from " + format_duration(min_ns) + " to " + format_duration(max_ns));
    return false;
  }
  out_ns = *value;
  return true;
}

std::string format_duration(uint64_t nanoseconds) {
  const auto unit = std::find_if(std::rbegin(kUnits), std::rend(kUnits), [&](const Unit& u) {
    return nanoseconds >= u.nanoseconds && nanoseconds % u.nanoseconds == 0;
  });
  if (unit == std::rend(kUnits)) return "0s";
  return std::to_string(nanoseconds / unit->nanoseconds) + std::string(unit->name);
}

bool read_rate(const Field& field, uint64_t& out_per_second) {
  const std::string what = "a rate such as 200/s";
  const std::string* text = scalar(field, what);
  if (text == nullptr) return false;
  const auto value = text->ends_with("/s") ? digits(std::string_view(*text).substr(0, text->size() - 2)) : std::nullopt;
  if (!value || *value == 0 || *value > UINT32_MAX) {
    field.fail_expected(what);
    return false;
  }
  out_per_second = *value;
  return true;
}

bool read_mac(const Field& field, MacAddress& out) {
  MacAddress mac;
  if (!read_parsed(field, "a MAC address such as 02:00:00:00:0f:00", &MacAddress::parse, mac)) return false;
  if (mac.is_group() || mac.is_zero()) {
    field.fail_expected("the MAC address of one station (not multicast, not zero)");
    return false;
  }
  out = mac;
  return true;
}

bool read_mac(const Field& field, std::optional<MacAddress>& out) {
  MacAddress mac;
  if (!read_mac(field, mac)) return false;
  out = mac;
  return true;
}

bool read_ip(const Field& field, IpAddress& out) {
  IpAddress address;
  if (!read_parsed(field, "an IP address such as 192.0.2.1 or 2001:db8::1", &IpAddress::parse, address)) return false;
  if (!address.may_be_host()) {
    field.fail_expected("the IP address of one host (not loopback, multicast, broadcast or unspecified)");
    return false;
  }
  out = address;
  return true;
}

bool read_prefix(const Field& field, Prefix& out) {
  return read_parsed(field, "an address with its prefix length such as 192.0.2.2/24 or 2001:db8::2/64", &Prefix::parse,
                     out);
}

std::optional<size_t> read_word(const Field& field, std::span<const std::string_view> names) {
  std::string what = "one of ";
  for (size_t i = 0; i < names.size(); ++i) what += (i == 0 ? "" : ", ") + std::string(names[i]);
  if (names.size() == 1) what = '"' + std::string(names[0]) + '"';
  const std::string* text = scalar(field, what);
  if (text == nullptr) return std::nullopt;
  const auto it = std::find(names.begin(), names.end(), *text);
  if (it != names.end()) return static_cast<size_t>(it - names.begin());
  field.fail_expected(what);
  return std::nullopt;
}

}  // namespace margay
