// SPDX-License-Identifier: Apache-2.0
#pragma once

// Records as JSON objects, for files that a person reads too: a writer and a reader that walk over a record's fields by
// the same calls, in the same order, so that each record lists its fields once (common/shared_table/snapshot_fields.h).
// Words are those of the site file, durations seconds, addresses text. Reading is strict: every field must be there, of
// its type and in its range, and no other; the error names the first that is not:
//
//   scis[0].instances[1].health: "SICK", expected HEALTHY, DEGRADED, UNHEALTHY or UNKNOWN
//
// Any thread; one walk a thread.

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/health.h"
#include "common/net.h"
#include "common/result.h"
#include "common/sci_config.h"

namespace margay {

template <class E>
std::string_view spelling_of(E value) {
  if constexpr (requires { word_of(value); }) {
    return word_of(value);
  } else {
    return name_of(value);
  }
}

class JsonWriter {
 public:
  using Json = nlohmann::ordered_json;

  template <class T>
  void number(std::string_view name, const T& value, uint64_t, uint64_t) {
    put(name, uint64_t{value});
  }
  template <class E>
  void word(std::string_view name, const E& value, E) {
    put(name, spelling_of(value));
  }
  void flag(std::string_view name, const bool& value) { put(name, value); }
  void text(std::string_view name, const std::string& value, size_t) { put(name, value); }
  void share(std::string_view name, const double& value) { put(name, value); }
  void duration(std::string_view name, const Nanoseconds& value) { put(name, static_cast<double>(value) / kSecond); }
  void protocol(std::string_view name, const Protocol& value) { put(name, value == Protocol::kTcp ? "tcp" : "udp"); }
  void address(std::string_view name, const IpAddress& value) { put(name, value.format()); }
  void prefix(std::string_view name, const Prefix& value) { put(name, value.format()); }
  void mac(std::string_view name, const std::optional<MacAddress>& value) {
    if (value) put(name, value->format());
  }
  template <class T, class Each>
  void list(std::string_view name, const std::vector<T>& values, uint32_t, Each each) {
    Json array = Json::array();
    for (const T& value : values) {
      JsonWriter element;
      each(element, value);
      array.push_back(std::move(element.json_));
    }
    put(name, std::move(array));
  }
  template <class T, class Pass>
  void object(std::string_view name, const T& value, Pass pass) {
    JsonWriter member;
    pass(member, value);
    put(name, std::move(member.json_));
  }
  // A field that may be missing.
  template <class T, class Pass>
  void maybe(std::string_view, const std::optional<T>& value, Pass pass) {
    if (value) pass(*this, *value);
  }

  // Without the line's end. What is not UTF-8 in a name is replaced.
  std::string line() const { return json_.dump(-1, ' ', false, Json::error_handler_t::replace); }

 private:
  void put(std::string_view name, Json value) { json_[std::string(name)] = std::move(value); }

  Json json_ = Json::object();
};

class JsonReader {
 public:
  using Json = nlohmann::ordered_json;

  // A walk over one line; the error of what is wrong first, in the JSON itself too.
  template <class T, class Pass>
  static Result<void> read(std::string_view line, T& record, Pass pass) {
    const Json json = Json::parse(line, nullptr, false);
    std::string error;
    if (!json.is_object()) return Error{"expected one JSON object"};
    read_object(json, "", error, record, pass);
    if (!error.empty()) return Error{error};
    return {};
  }

  template <class T>
  void number(std::string_view name, T& value, uint64_t min, uint64_t max) {
    const std::string range = std::to_string(min) + " to " + std::to_string(max);
    const Json* json = take(name, range);
    if (json == nullptr) return;
    const bool fits = json->is_number_unsigned() && json->get<uint64_t>() >= min && json->get<uint64_t>() <= max;
    if (!fits) return fail(name, *json, range);
    value = static_cast<T>(json->get<uint64_t>());
  }
  template <class E>
  void word(std::string_view name, E& value, E last) {
    std::vector<std::string_view> words;
    for (int e = 0; e <= static_cast<int>(last); ++e) words.push_back(spelling_of(static_cast<E>(e)));
    if (const auto found = one_of(name, words)) value = static_cast<E>(*found);
  }
  void protocol(std::string_view name, Protocol& value) {
    if (const auto found = one_of(name, {"tcp", "udp"})) value = *found == 0 ? Protocol::kTcp : Protocol::kUdp;
  }
  void flag(std::string_view name, bool& value) {
    const Json* json = take(name, "true or false");
    if (json == nullptr) return;
    if (!json->is_boolean()) return fail(name, *json, "true or false");
    value = json->get<bool>();
  }
  void text(std::string_view name, std::string& value, size_t max);
  void share(std::string_view name, double& value) { real(name, value, 1, "0 to 1"); }
  void duration(std::string_view name, Nanoseconds& value) {
    double seconds = 0;
    real(name, seconds, 24 * 3600, "0 to 86400 seconds");
    value = static_cast<Nanoseconds>(std::llround(seconds * static_cast<double>(kSecond)));
  }
  void address(std::string_view name, IpAddress& value) { parsed(name, value, "an IPv4 or IPv6 address"); }
  void prefix(std::string_view name, Prefix& value) { parsed(name, value, "an address with a prefix length"); }
  void mac(std::string_view name, std::optional<MacAddress>& value) {
    if (has(name)) parsed(name, value.emplace(), "a MAC address");
  }
  template <class T, class Each>
  void list(std::string_view name, std::vector<T>& values, uint32_t max, Each each) {
    const std::string what = "a list of at most " + std::to_string(max);
    const Json* json = take(name, what);
    if (json == nullptr) return;
    if (!json->is_array() || json->size() > max) return fail(name, *json, what);
    for (size_t i = 0; i < json->size() && error_.empty(); ++i) {
      const std::string at = path_ + std::string(name) + "[" + std::to_string(i) + "]";
      read_object((*json)[i], at, error_, values.emplace_back(), each);
    }
  }
  template <class T, class Pass>
  void object(std::string_view name, T& value, Pass pass) {
    const Json* json = take(name, "an object");
    if (json != nullptr) read_object(*json, path_ + std::string(name), error_, value, pass);
  }
  template <class T, class Pass>
  void maybe(std::string_view name, std::optional<T>& value, Pass pass) {
    if (has(name)) pass(*this, value.emplace());
  }
  bool has(std::string_view name) const { return object_.contains(std::string(name)); }

 private:
  JsonReader(const Json& object, std::string path, std::string& error)
      : object_(object), path_(std::move(path)), error_(error) {}

  template <class T, class Pass>
  static void read_object(const Json& json, const std::string& at, std::string& error, T& record, Pass pass) {
    JsonReader reader(json, at.empty() ? at : at + ".", error);
    if (!json.is_object()) {
      error = at + ": expected an object";
      return;
    }
    pass(reader, record);
    if (error.empty()) reader.refuse_others();
  }
  template <class T>
  void parsed(std::string_view name, T& value, std::string_view what) {
    const Json* json = take(name, what);
    if (json == nullptr) return;
    const auto read = json->is_string() ? T::parse(json->get_ref<const std::string&>()) : Result<T>(Error{""});
    if (!read) return fail(name, *json, what);
    value = *read;
  }
  void real(std::string_view name, double& value, double max, std::string_view what);
  std::optional<size_t> one_of(std::string_view name, const std::vector<std::string_view>& words);
  // The field's value; nullptr after an error.
  const Json* take(std::string_view name, std::string_view what);
  void fail(std::string_view name, const Json& got, std::string_view what);
  void refuse_others();

  const Json& object_;
  std::string path_;
  std::string& error_;
  std::vector<std::string_view> taken_;
};

}  // namespace margay
