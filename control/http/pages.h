// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pages of margay-control's HTTP server: /metrics, and /health for whoever watches the process. In the server's
// thread; takes the turn only to copy numbers.

#include <mutex>
#include <string>

#include "control/http/server.h"
#include "control/service.h"

namespace margay::control {

HttpServer::Answer http_answer(const Service& service, std::mutex& turn, const std::string& path);

}  // namespace margay::control
