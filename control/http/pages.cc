// SPDX-License-Identifier: Apache-2.0
#include "control/http/pages.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "control/http/agent_metrics.h"
#include "control/http/family.h"
#include "control/http/metrics_page.h"

namespace margay::control {
namespace {

void collect_pull_port(const PullPort& port, std::vector<prometheus::MetricFamily>& out) {
  Family pulls("margay_sci_pulls_total", "Questions of C-SMAs for reports, by what they got",
               prometheus::MetricType::Counter);
  pulls.add({{"result", "report"}}, port.counters().answered);
  pulls.add({{"result", "refusal"}}, port.counters().refused);
  pulls.move_to(out);
}

HttpServer::Answer metrics(const Service& service, std::mutex& turn) {
  std::vector<prometheus::MetricFamily> families;
  {
    const std::lock_guard lock(turn);
    families = collect(service.site().scis(), service.statistics(), service.numbers());
    if (service.pull_port() != nullptr) collect_pull_port(*service.pull_port(), families);
    if (service.agent() != nullptr) collect_agent(*service.agent(), families);
  }
  return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = text_of(families)};
}

// 503 without a data plane whose workers make progress, where there is to be one.
HttpServer::Answer health(const Service& service, std::mutex& turn) {
  DataPlaneLink::Status link;
  bool needed = true;
  {
    const std::lock_guard lock(turn);
    link = service.site().link().status();
    needed = !service.site().spec().site.control_socket.empty();
  }
  const bool well = !needed || (link.connected && link.alive);
  nlohmann::ordered_json body = {{"status", well ? "ok" : "data plane lost"}};
  if (!well) body["why"] = link.why;
  return {.status = well ? 200u : 503u,
          .type = "application/json",
          .body = body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"};
}

}  // namespace

HttpServer::Answer http_answer(const Service& service, std::mutex& turn, const std::string& path) {
  if (path == "/metrics") return metrics(service, turn);
  if (path == "/health") return health(service, turn);
  return {.status = 404, .body = "expected /metrics or /health\n"};
}

}  // namespace margay::control
