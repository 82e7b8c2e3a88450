// SPDX-License-Identifier: Apache-2.0
// /metrics and /health of a whole control plane.
#include "control/http/pages.h"

#include "tests/unit/control/service_rig.h"

namespace margay::control {
namespace {

class Pages : public ::testing::Test, protected ServiceRig {
 protected:
  HttpServer::Answer get(const std::string& path) { return http_answer(*service, turn_, path); }

 private:
  std::mutex turn_;
};

TEST_F(Pages, HealthIsThatOfTheDataPlane) {
  EXPECT_EQ(get("/health").status, 503u);
  await_all(HealthState::kHealthy);
  const HttpServer::Answer well = get("/health");
  EXPECT_EQ(well.status, 200u);
  EXPECT_EQ(well.type, "application/json");
  EXPECT_EQ(well.body, "{\"status\":\"ok\"}\n");
  beats = false;
  await("frozen", [this] { return !service->site().link().status().alive; });
  EXPECT_EQ(get("/health").status, 503u);
  EXPECT_EQ(get("/health").body,
            "{\"status\":\"data plane lost\",\"why\":\"no worker of the data plane makes progress\"}\n");
}

TEST_F(Pages, Metrics) {
  await_all(HealthState::kHealthy);
  const HttpServer::Answer page = get("/metrics");
  EXPECT_EQ(page.status, 200u);
  EXPECT_EQ(page.type, "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_NE(page.body.find("margay_sci_gas{csci_id=\"192.0.2.20:80\"} 7\n"), std::string::npos) << page.body;
  EXPECT_NE(page.body.find("\nmargay_data_plane_up 1\n"), std::string::npos) << page.body;
}

TEST_F(Pages, NothingElse) {
  EXPECT_EQ(get("/").status, 404u);
  EXPECT_EQ(get("/").body, "expected /metrics or /health\n");
}

}  // namespace
}  // namespace margay::control
