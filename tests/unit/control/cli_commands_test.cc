// SPDX-License-Identifier: Apache-2.0
// Each command of margay-control: text, JSON and errors, against numbers set up by hand.
#include "control/cli/commands.h"

#include <nlohmann/json.hpp>

#include "common/cli/executor.h"
#include "tests/unit/control/service_rig.h"

namespace margay::control {
namespace {

using nlohmann::json;

const std::string kArs = "192.0.2.10:80", kWeb = "192.0.2.20:80";

class ControlCommands : public ::testing::Test, protected ServiceRig {
 protected:
  ControlCommands() { register_commands(table_, *service); }

  // Text or JSON; "POSITION: MESSAGE" of an error behind what was written until then.
  std::string run(const std::string& line, bool as_json = false) {
    std::string out;
    const Answer a = executor_.run(line, as_json, [&](std::string_view piece) {
      out += piece;
      return true;
    });
    quit_ = a.quit;
    if (!a.result) out += std::to_string(a.result.error().position) + ": " + a.result.error().message;
    return out;
  }
  json show(const std::string& line) {
    const std::string text = run(line, true);
    EXPECT_TRUE(json::accept(text)) << line << ": " << text;
    return json::parse(text, nullptr, false);
  }
  // Both HEALTHY, 10 + 20 sessions on si-1 of 100, 1 on si-2 of 50, 7 on si-3 of 7.
  void serve() {
    await_all(HealthState::kHealthy);
    hold(kArs, "si-1", 0, 10), hold(kArs, "si-1", 1, 20), hold(kArs, "si-2", 0, 1), hold(kWeb, "si-3", 1, 7);
    await("GAS and scrapes", [this] {
      for (const char* id : {"si-1", "si-2"}) {
        if (!service->site().scis().at(kArs).reading(id, Metric::kLoad, read_clocks().monotonic)) return false;
      }
      return gas_of(kArs) == 119 && gas_of(kWeb) == 0;
    });
  }
  std::optional<uint32_t> gas_of(const std::string& csci_id) {
    const auto gas = service->site().scis().at(csci_id).state().gas;
    return gas ? std::optional(gas->value) : std::nullopt;
  }
  // The row of this instance, without the columns that move with time.
  static json row_of(const json& rows, const std::string& si_id, std::initializer_list<const char*> moving) {
    for (json row : rows) {
      for (const char* column : moving) {
        EXPECT_TRUE(row.contains(column)) << column;
        row.erase(column);
      }
      if (row["si_id"] == si_id) return row;
    }
    return nullptr;
  }

  bool quit_ = false;

 private:
  CommandTable table_;
  std::mutex control_;
  LocalExecutor executor_{table_, control_};
};

TEST_F(ControlCommands, ShowHealth) {
  serve();
  const json health = show("show health");
  EXPECT_EQ(health["scis"].size(), 2u);
  EXPECT_EQ(health["scis"][0], json({{"csci_id", kArs},
                                     {"health", "HEALTHY"},
                                     {"healthy", 2},
                                     {"degraded", 0},
                                     {"unhealthy", 0},
                                     {"unknown", 0},
                                     {"admin", "enabled"},
                                     {"data_plane_lost", false},
                                     {"gas", 119},
                                     {"computing_time_ms", nullptr}}));
  EXPECT_EQ(row_of(health["instances"], "si-1", {"for_s"}), json({{"csci_id", kArs},
                                                                  {"si_id", "si-1"},
                                                                  {"health", "HEALTHY"},
                                                                  {"admin", "enabled"},
                                                                  {"limit", 100},
                                                                  {"active", 30},
                                                                  {"last_change", "liveness passed 2 times"}}));
  EXPECT_EQ(show("show health sci " + kWeb)["instances"].size(), 1u);
  const std::string text = run("show health sci " + kWeb);
  EXPECT_EQ(text.substr(0, text.find("\n\n")),
            "csci id        health   healthy  degraded  unhealthy  unknown  admin    data plane lost  gas  "
            "computing time ms\n"
            "192.0.2.20:80  HEALTHY        1         0          0        0  enabled  no                 0  -");
}

TEST_F(ControlCommands, ShowHealthOfWhatFails) {
  await_all(HealthState::kHealthy);
  answer.verdict = Prober::Verdict::kFailed;
  answer.detail = "refused";
  await("UNHEALTHY", [this] { return health(kArs, "si-1") == HealthState::kUnhealthy; });
  EXPECT_EQ(row_of(show("show health")["instances"], "si-1", {"for_s"})["last_change"], "liveness failed 2 times");
  const json check = row_of(show("show checks sci " + kArs)["checks"], "si-1", {"age_s", "passed", "failed"});
  EXPECT_EQ(check["last"], "fail");
  EXPECT_EQ(check["detail"], "refused");
}

TEST_F(ControlCommands, ShowMetrics) {
  serve();
  const json metrics = show("show metrics");
  ASSERT_EQ(metrics["metrics"].size(), 2u);  // the other SCI is not scraped
  json row = row_of(metrics["metrics"], "si-2", {"age_ms"});
  EXPECT_EQ(row, json({{"csci_id", kArs}, {"si_id", "si-2"}, {"metric", "load"}, {"value", 7.0}}));
  EXPECT_EQ(metrics["path"].size(), 3u);
  EXPECT_EQ(row_of(metrics["path"], "si-3", {}),
            json({{"csci_id", kWeb}, {"si_id", "si-3"}, {"responses", 0}, {"mean_ms", nullptr}}));
  EXPECT_EQ(run("show metrics sci " + kWeb),
            "metrics: none\n\ncsci id        si id  responses  mean ms\n192.0.2.20:80  si-3           0  -\n");
}

TEST_F(ControlCommands, ShowReport) {
  serve();
  await("a report", [this] { return service->statistics().scis().at(kArs).last_report->state.gas->value == 119; });
  const json report = show("show report sci " + kArs);
  ASSERT_EQ(report["last"].size(), 1u);
  const json& last = report["last"][0];
  for (const auto& [key, value] : std::map<std::string, json>{{"cs_id", "ARS"},
                                                              {"gas", 119},
                                                              {"healthy_free", 119},
                                                              {"degraded_free", 0},
                                                              {"provisional", 0},
                                                              {"over_limit", 0},
                                                              {"healthy", 2},
                                                              {"unhealthy", 0},
                                                              {"admin", "enabled"},
                                                              {"data_plane_lost", false},
                                                              {"minimum_ms", nullptr},
                                                              {"security_events", 0}}) {
    EXPECT_EQ(last[key], value) << key;
  }
  EXPECT_EQ(last["reasons"].back(), last["trigger"]);
  EXPECT_EQ(report["reports"][report["reports"].size() - 1],
            json({{"csci_id", kArs}, {"trigger", "START"}, {"reports", 1}}));
  EXPECT_NE(run("show report").find("\n  gas                119\n"), std::string::npos) << run("show report");
}

TEST_F(ControlCommands, ShowTable) {
  serve();
  json table = show("show table");
  const json rows = table["instances"];
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(row_of(rows, "si-2", {"index", "generation"}), json({{"csci_id", kArs},
                                                                 {"si_id", "si-2"},
                                                                 {"health", "HEALTHY"},
                                                                 {"admin", "enabled"},
                                                                 {"limit", 50},
                                                                 {"max_sessions", 50},
                                                                 {"weight", 3}}));
  EXPECT_EQ(table["acked"], table["generation"]);
  EXPECT_EQ(table["taken"], table["generation"]);
  table.erase("instances"), table.erase("acked"), table.erase("taken"), table.erase("generation");
  EXPECT_EQ(table, json({{"connected", true},
                         {"alive", true},
                         {"workers", 2},
                         {"connections", 1},
                         {"under_way", 0},
                         {"refused", 0}}));
  plane.close();
  plane.stop_listening();
  plays = false;
  turn();
  EXPECT_TRUE(run("show table").starts_with("connected: no\nalive: no\nwhy: the data plane closed the connection\n"));
}

TEST_F(ControlCommands, ShowTableOfARefusal) {
  plays = false;
  await("it calls", [this] { return plane.accept(); });
  plane.welcome();
  await("a table", [this] {
    const auto c = plane.commit();
    if (c) plane.say(shared_table::MessageKind::kRefused, c->message.buffer, c->message.generation, "no \xff\n room");
    return c.has_value();
  });
  await("its refusal", [this] { return service->site().link().status().refused == 1; });
  EXPECT_EQ(show("show table")["refused"], 1);
  EXPECT_NE(run("show table").find("last refusal: no \xff? room\n"), std::string::npos) << run("show table");
}

TEST_F(ControlCommands, ShowChecks) {
  serve();
  const json checks = show("show checks");
  EXPECT_EQ(checks["checks"].size(), 6u);  // liveness and scrape of each
  EXPECT_EQ(row_of(checks["checks"], "si-3", {"age_s", "passed"}), json({{"csci_id", kWeb},
                                                                         {"si_id", "si-3"},
                                                                         {"check", "liveness"},
                                                                         {"last", "pass"},
                                                                         {"latency_ms", 2.0},
                                                                         {"mean_ms", 2.0},
                                                                         {"failed", 0},
                                                                         {"errors", 0},
                                                                         {"detail", nullptr}}));
  EXPECT_TRUE(checks["slip_max_ms"].is_number());
  EXPECT_NE(run("show checks sci " + kArs).find("192.0.2.10:80  si-2   scrape    -"), std::string::npos)
      << run("show checks sci " + kArs);
}

TEST_F(ControlCommands, DrainAndUndrain) {
  EXPECT_EQ(run("drain " + kArs), "7: this SCI has not begun yet");
  serve();
  EXPECT_EQ(run("drain " + kArs + " si-1"), "192.0.2.10:80 si-1 takes no new sessions\n");
  EXPECT_EQ(gas_of(kArs), 49u);
  EXPECT_EQ(show("undrain " + kArs + " si-1"), json({{"draining", false}}));
  EXPECT_EQ(gas_of(kArs), 119u);
  EXPECT_EQ(show("drain " + kArs), json({{"draining", true}}));
  EXPECT_EQ(show("show health")["scis"][0]["admin"], "draining");
  EXPECT_EQ(gas_of(kArs), 0u);
  EXPECT_EQ(run("undrain " + kArs), "192.0.2.10:80 takes new sessions\n");
  EXPECT_EQ(run("drain 192.0.2.30:80"),
            "7: expected the CSCI-ID of an SCI, one of: 192.0.2.10:80 192.0.2.20:80, not '192.0.2.30:80'");
  EXPECT_EQ(run("drain " + kArs + " si-3"),
            "21: expected the SI-ID of an instance of that SCI, one of: si-1 si-2, not 'si-3'");
}

TEST_F(ControlCommands, Reload) {
  serve();
  write(test::replaced(text(), "max_sessions: 7", "max_sessions: 9"));
  const json done = show("reload");
  EXPECT_EQ(done["file"], file());
  ASSERT_EQ(done["changes"].size(), 1u);
  EXPECT_NE(done["changes"][0]["change"].get<std::string>().find("instances[si-3]"), std::string::npos) << done;
  EXPECT_EQ(gas_of(kWeb), 2u);
  write(test::replaced(text(), "cs_id: WEB", "colour: red"));
  const std::string wrong = run("reload");
  EXPECT_NE(wrong.find(file() + ":18:5: scis[1]: unknown key \"colour\""), std::string::npos) << wrong;
  write(test::replaced(text(), "edge-1", "edge-2"));
  EXPECT_NE(run("reload").find("a restart is needed to change site"), std::string::npos);
  EXPECT_EQ(gas_of(kWeb), 2u);
}

TEST_F(ControlCommands, ShutdownAndWords) {
  EXPECT_FALSE(service->stopping());
  EXPECT_EQ(run("shutdown"), "the daemon ends\n");
  EXPECT_TRUE(service->stopping() && quit_);
  EXPECT_TRUE(run("version").starts_with("margay-control "));
  EXPECT_EQ(run("show health sci 192.0.2.30:80"),
            "17: expected the CSCI-ID of an SCI, one of: 192.0.2.10:80 192.0.2.20:80, not '192.0.2.30:80'");
  EXPECT_EQ(run("show flows"), "6: expected one of: health metrics report table checks reports-to");
  EXPECT_NE(run("help drain").find("drain CSCI-ID SI-ID"), std::string::npos) << run("help drain");
}

}  // namespace
}  // namespace margay::control
