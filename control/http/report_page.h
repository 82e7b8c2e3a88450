// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pages of `control.pulled_by.http`: GET /v1/report/CSCI-ID is the SCI's report of now, a margay.v1.Report in
// Protobuf's binary form (CSMA-30). By HTTPS, to whoever shows the certificate of a C-SMA that may ask.

#include <memory>

#include "common/cli/foreground_shell.h"
#include "common/result.h"
#include "control/http/server.h"
#include "control/service.h"

namespace margay::control {

// The connections that its own thread holds at a time; many C-SMAs ask, each one question at a time.
inline constexpr HttpServer::Limits kReportLimits{.connections = 256};

// REQUIRES: by.http; service.pull_port(); the service outlives it
Result<std::unique_ptr<HttpServer>> open_report_server(const PulledBy& by, Service& service,
                                                       const std::shared_ptr<Commands>& commands);

}  // namespace margay::control
