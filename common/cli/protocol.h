// SPDX-License-Identifier: Apache-2.0
#pragma once

// The CLI's protocol over a Unix stream socket: one JSON object a line each way, one request at a time.
//
//   request   {"line":"show flow","json":true}        or   {"complete":"show f"}
//   answer    {"out":"..."}  any number of times, then     {"ok":true,"words":["flow"],"hints":["flow ..."]}
//             {"ok":true}, {"ok":true,"quit":true} or
//             {"error":"...","position":6}
//
// Both sides bound the length of a line and refuse nesting beyond an object with arrays, so that neither can be made
// to use much memory by the other. Any thread.

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/result.h"

namespace margay {

inline constexpr size_t kRequestMax = 4096;     // bytes, line end included
inline constexpr size_t kAnswerMax = 1u << 20;  // bytes of one answer line

// An object that holds strings, numbers, booleans and arrays of them.
Result<nlohmann::json> read_message(std::string_view line);
std::string write_message(const nlohmann::json& message);  // with its line end

}  // namespace margay
