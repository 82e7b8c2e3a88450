// SPDX-License-Identifier: Apache-2.0
#include "control/http/report_page.h"

#include <charconv>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "control/clocks.h"
#include "control/record/wire.h"
#include "margay/v1/report.pb.h"

namespace margay::control {
namespace {

constexpr std::string_view kPage = "/v1/report/";

// Nothing: a % without two digits behind it.
std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned byte = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    if (std::from_chars(&text[i + 1], &text[i + 1] + 2, byte, 16).ptr != &text[i + 1] + 2) return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

HttpServer::Answer page_of(const PullPort::Answer& answer) {
  if (answer.report == nullptr) {
    return {.status = answer.code == rpc::Code::kInvalid ? 404u : 503u, .body = answer.why + "\n"};
  }
  v1::Report message;
  to_wire(*answer.report, message);
  return {.type = "application/x-protobuf", .body = message.SerializeAsString()};
}

}  // namespace

Result<std::unique_ptr<HttpServer>> open_report_server(const PulledBy& by, Service& service,
                                                       const std::shared_ptr<Commands>& commands) {
  HttpServer::Tls tls;
  tls.credentials = service.pull_port()->credentials();
  tls.peers.kind = security::Kind::kCSma;
  tls.peers.identity = by.identity;
  tls.refused = [&service, commands](security::Refusal why, const std::string& detail) {
    const std::lock_guard turn(commands->control);
    service.pull_port()->refused(std::string(security::name_of(why)), detail, read_clocks().monotonic);
  };
  auto page = [&service, commands](const std::string& path, const HttpServer::Respond& respond) {
    const auto csci_id = path.starts_with(kPage) ? decoded(std::string_view(path).substr(kPage.size())) : std::nullopt;
    if (!csci_id) return respond({.status = 404, .body = "expected /v1/report/CSCI-ID\n"});
    const std::lock_guard turn(commands->control);
    service.pull(*csci_id, [respond](const PullPort::Answer& answer) { respond(page_of(answer)); });
  };
  return HttpServer::open(*by.http, std::move(page), std::move(tls), kReportLimits);
}

}  // namespace margay::control
