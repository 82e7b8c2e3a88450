// SPDX-License-Identifier: Apache-2.0
#include "common/json_fields.h"

#include <algorithm>

namespace margay {
namespace {

constexpr size_t kShownMax = 40;  // bytes of a wrong value in its error

std::string dump(const JsonReader::Json& json) {
  std::string text = json.dump(-1, ' ', true, JsonReader::Json::error_handler_t::replace);
  if (text.size() > kShownMax) text = text.substr(0, kShownMax) + "...";
  return text;
}

}  // namespace

void JsonReader::text(std::string_view name, std::string& value, size_t max) {
  const std::string what = "a text of 1 to " + std::to_string(max) + " bytes";
  const Json* json = take(name, what);
  if (json == nullptr) return;
  const auto* read = json->get_ptr<const std::string*>();
  if (read == nullptr || read->empty() || read->size() > max) return fail(name, *json, what);
  value = *read;
}

void JsonReader::real(std::string_view name, double& value, double max, std::string_view what) {
  const Json* json = take(name, what);
  if (json == nullptr) return;
  if (!json->is_number() || !(json->get<double>() >= 0 && json->get<double>() <= max)) return fail(name, *json, what);
  value = json->get<double>();
}

std::optional<size_t> JsonReader::one_of(std::string_view name, const std::vector<std::string_view>& words) {
  std::string what;
  for (size_t i = 0; i < words.size(); ++i) {
    what += i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
    what += words[i];
  }
  const Json* json = take(name, what);
  if (json == nullptr) return std::nullopt;
  const auto* read = json->get_ptr<const std::string*>();
  const auto found = read == nullptr ? words.end() : std::find(words.begin(), words.end(), *read);
  if (found != words.end()) return static_cast<size_t>(found - words.begin());
  fail(name, *json, what);
  return std::nullopt;
}

const JsonReader::Json* JsonReader::take(std::string_view name, std::string_view what) {
  if (!error_.empty()) return nullptr;
  taken_.push_back(name);
  const auto found = object_.find(std::string(name));
  if (found != object_.end()) return &*found;
  error_ = path_ + std::string(name) + ": is missing, expected " + std::string(what);
  return nullptr;
}

void JsonReader::fail(std::string_view name, const Json& got, std::string_view what) {
  error_ = path_ + std::string(name) + ": " + dump(got) + ", expected " + std::string(what);
}

void JsonReader::refuse_others() {
  for (const auto& [name, value] : object_.items()) {
    if (std::find(taken_.begin(), taken_.end(), name) != taken_.end()) continue;
    error_ = path_ + dump(name) + ": there is no such field here";
    return;
  }
}

}  // namespace margay
