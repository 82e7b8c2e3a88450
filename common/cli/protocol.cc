// SPDX-License-Identifier: Apache-2.0
#include "common/cli/protocol.h"

namespace margay {

Result<nlohmann::json> read_message(std::string_view line) {
  using nlohmann::json;
  bool too_deep = false;
  const json::parser_callback_t bounded = [&](int depth, json::parse_event_t event, json&) {
    const bool opens = event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    if (opens && depth > 1) too_deep = true;
    return !too_deep;
  };
  json message = json::parse(line, bounded, false);
  if (too_deep || !message.is_object()) return Error{"expected one JSON object, one level deep, on a line"};
  return message;
}

std::string write_message(const nlohmann::json& message) {
  return message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

}  // namespace margay
