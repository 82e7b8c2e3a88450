// SPDX-License-Identifier: Apache-2.0
// Metrics out of pages as well-known exporters show them (short excerpts, made after their public documentation).
#include "control/collection/http/samples.h"

#include <gtest/gtest.h>

#include <map>

#include "control/collection/http/presets.h"

namespace margay::control {
namespace {

using Names = std::vector<MetricsConfig::Name>;
using Made = std::map<std::string, std::pair<SampleKind, double>>;

constexpr SampleKind kGauge = SampleKind::kGauge, kCounter = SampleKind::kCounter;

// What each page gives in turn.
Made after(const Names& names, std::initializer_list<const char*> pages) {
  SampleMaker maker(names);
  Made made;
  for (const char* page : pages) {
    const auto series = parse_exposition(page);
    EXPECT_TRUE(series) << page;
    made.clear();
    for (const Sample& s : maker.make(*series)) {
      EXPECT_FALSE(made.contains(std::string(name_of(s.metric)))) << "twice";
      made[std::string(name_of(s.metric))] = {s.kind, s.value};
    }
  }
  return made;
}

void expect(const Made& made, const std::string& metric, SampleKind kind, double value) {
  const auto found = made.find(metric);
  ASSERT_NE(found, made.end()) << metric;
  EXPECT_EQ(found->second.first, kind) << metric;
  EXPECT_DOUBLE_EQ(found->second.second, value) << metric;
}

Names preset(std::string_view word) {
  const auto names = find_preset(word);
  return {names.begin(), names.end()};
}

// ---- node_exporter

constexpr const char* kNode1 = R"(# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 1000
node_cpu_seconds_total{cpu="0",mode="user"} 200
node_cpu_seconds_total{cpu="1",mode="idle"} 1100
node_cpu_seconds_total{cpu="1",mode="user"} 100
# TYPE node_disk_read_bytes_total counter
node_disk_read_bytes_total{device="sda"} 5000
node_disk_read_bytes_total{device="sdb"} 0
# TYPE node_disk_written_bytes_total counter
node_disk_written_bytes_total{device="sda"} 7.0e+03
# TYPE node_load1 gauge
node_load1 0.35
# TYPE node_memory_MemAvailable_bytes gauge
node_memory_MemAvailable_bytes 2e+09
# TYPE node_memory_MemTotal_bytes gauge
node_memory_MemTotal_bytes 8e+09
)";
constexpr const char* kNode2 = R"(# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 1001
node_cpu_seconds_total{cpu="0",mode="user"} 204
node_cpu_seconds_total{cpu="1",mode="idle"} 1103
node_cpu_seconds_total{cpu="1",mode="user"} 102
# TYPE node_disk_read_bytes_total counter
node_disk_read_bytes_total{device="sda"} 5600
node_disk_read_bytes_total{device="sdb"} 30
# TYPE node_disk_written_bytes_total counter
node_disk_written_bytes_total{device="sda"} 7.1e+03
# TYPE node_load1 gauge
node_load1 1.5
)";

TEST(Samples, NodeExporter_SCI21_SCI23) {
  const Made first = after(preset("node"), {kNode1});
  EXPECT_FALSE(first.contains("cpu"));  // nothing to compare with
  expect(first, "memory", kGauge, 0.75);
  expect(first, "disk_io", kCounter, 0);
  expect(first, "load", kGauge, 0.35);
  const Made second = after(preset("node"), {kNode1, kNode2});
  expect(second, "cpu", kGauge, 0.6);  // idle for 1 + 3 of 10 seconds
  expect(second, "disk_io", kCounter, 600 + 30 + 100);
  expect(second, "load", kGauge, 1.5);
  EXPECT_FALSE(second.contains("memory"));  // not told any more
}

// ---- nginx: prometheus exporter and VTS

TEST(Samples, NginxExporterAndErrorsByStatusClass_SCI22) {
  const Names names = {{.metric = "requests", .series = "nginx_vts_server_requests_total"},
                       {.metric = "errors", .series = "nginx_vts_server_requests_total", .label = "code", .is = "5xx"},
                       {.metric = "connections", .series = "nginx_connections_active"}};
  const Made made = after(names, {R"(# TYPE nginx_connections_active gauge
nginx_connections_active 3
# TYPE nginx_vts_server_requests_total counter
nginx_vts_server_requests_total{host="a",code="2xx"} 100
nginx_vts_server_requests_total{host="a",code="5xx"} 5
)",
                                  R"(nginx_connections_active 4
nginx_vts_server_requests_total{host="a",code="2xx"} 140
nginx_vts_server_requests_total{host="a",code="5xx"} 7
)"});
  expect(made, "requests", kCounter, 42);
  expect(made, "errors", kCounter, 2);
  expect(made, "connections", kGauge, 4);
}

TEST(Samples, AStatusIsOfItsClass) {
  const Names names = {{.metric = "errors", .series = "http_requests_total", .label = "status", .is = "5xx"}};
  const char* page = R"(http_requests_total{status="200"} %
http_requests_total{status="500"} %
http_requests_total{status="503"} %
http_requests_total{status="5030"} %
http_requests_total{status="50x"} %
http_requests_total{code="500"} %
)";
  std::string before, later;
  for (const char c : std::string(page)) {
    before += c == '%' ? '1' : c;
    later += c == '%' ? '3' : c;
  }
  expect(after(names, {before.c_str(), later.c_str()}), "errors", kCounter, 4);
}

// ---- vLLM, Triton, TGI

TEST(Samples, VllmsHistogramIsTheMeanOfTheIntervalsRequests_SCI22_SCI41) {
  const Names names = {{.metric = "gpu_memory", .series = "vllm:kv_cache_usage_perc"},
                       {.metric = "queue_depth", .series = "vllm:num_requests_waiting"},
                       {.metric = "response_time", .series = "vllm:e2e_request_latency_seconds"},
                       {.metric = "input_tokens", .series = "vllm:request_prompt_tokens"},
                       {.metric = "requests", .series = "vllm:request_success_total"}};
  const char* first = R"(# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 2.0
vllm:num_requests_waiting{engine="1",model_name="m"} 5.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.2
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.4
# TYPE vllm:e2e_request_latency_seconds histogram
vllm:e2e_request_latency_seconds_bucket{le="0.5",model_name="m"} 3.0
vllm:e2e_request_latency_seconds_bucket{le="+Inf",model_name="m"} 10.0
vllm:e2e_request_latency_seconds_count{model_name="m"} 10.0
vllm:e2e_request_latency_seconds_sum{model_name="m"} 30.0
# TYPE vllm:request_prompt_tokens histogram
vllm:request_prompt_tokens_count{model_name="m"} 10.0
vllm:request_prompt_tokens_sum{model_name="m"} 1000.0
# TYPE vllm:request_success_total counter
vllm:request_success_total{finished_reason="stop",model_name="m"} 9.0
vllm:request_success_total{finished_reason="length",model_name="m"} 1.0
)";
  const char* second = R"(# TYPE vllm:e2e_request_latency_seconds histogram
vllm:e2e_request_latency_seconds_count{model_name="m"} 14.0
vllm:e2e_request_latency_seconds_sum{model_name="m"} 32.0
# TYPE vllm:request_prompt_tokens histogram
vllm:request_prompt_tokens_count{model_name="m"} 14.0
vllm:request_prompt_tokens_sum{model_name="m"} 3000.0
# TYPE vllm:request_success_total counter
vllm:request_success_total{finished_reason="stop",model_name="m"} 12.0
vllm:request_success_total{finished_reason="length",model_name="m"} 2.0
)";
  const Made started = after(names, {first});
  expect(started, "queue_depth", kGauge, 7);
  expect(started, "gpu_memory", kGauge, (0.2 + 0.4) / 2);
  EXPECT_FALSE(started.contains("response_time"));
  const Made made = after(names, {first, second});
  expect(made, "response_time", kGauge, 2.0 / 4);
  expect(made, "input_tokens", kGauge, 2000.0 / 4);
  expect(made, "requests", kCounter, 4);
  // No request since: not known, rather than 0.
  EXPECT_FALSE(after(names, {first, second, second}).contains("response_time"));
  // The server began anew: of all that it counts now.
  expect(after(names, {first, second, R"(# TYPE vllm:e2e_request_latency_seconds histogram
vllm:e2e_request_latency_seconds_count{model_name="m"} 2.0
vllm:e2e_request_latency_seconds_sum{model_name="m"} 5.0
)"}),
         "response_time", kGauge, 2.5);
}

TEST(Samples, TritonsMicrosecondsPerRequest_SCI21_SCI22) {
  const Names names = {
      {.metric = "gpu", .series = "nv_gpu_utilization"},
      {.metric = "gpu_memory", .series = "nv_gpu_memory_used_bytes", .per = "nv_gpu_memory_total_bytes"},
      {.metric = "response_time",
       .series = "nv_inference_request_duration_us",
       .per = "nv_inference_request_success",
       .scale = 1e-6},
      {.metric = "requests", .series = "nv_inference_request_success"},
      {.metric = "requests", .series = "nv_inference_request_failure"}};
  const Made made = after(names, {R"(# TYPE nv_inference_request_success counter
nv_inference_request_success{model="a",version="1"} 100
# TYPE nv_inference_request_failure counter
nv_inference_request_failure{model="a",version="1"} 1
# TYPE nv_inference_request_duration_us counter
nv_inference_request_duration_us{model="a",version="1"} 500000
)",
                                  R"(# TYPE nv_inference_request_success counter
nv_inference_request_success{model="a",version="1"} 120
# TYPE nv_inference_request_failure counter
nv_inference_request_failure{model="a",version="1"} 4
# TYPE nv_inference_request_duration_us counter
nv_inference_request_duration_us{model="a",version="1"} 900000
# TYPE nv_gpu_utilization gauge
nv_gpu_utilization{gpu_uuid="GPU-1"} 0.5
nv_gpu_utilization{gpu_uuid="GPU-2"} 1
# TYPE nv_gpu_memory_total_bytes gauge
nv_gpu_memory_total_bytes{gpu_uuid="GPU-1"} 400
nv_gpu_memory_total_bytes{gpu_uuid="GPU-2"} 600
# TYPE nv_gpu_memory_used_bytes gauge
nv_gpu_memory_used_bytes{gpu_uuid="GPU-1"} 100
nv_gpu_memory_used_bytes{gpu_uuid="GPU-2"} 150
)"});
  expect(made, "response_time", kGauge, 0.02);  // 400 ms by 20 requests
  expect(made, "requests", kCounter, 23);
  expect(made, "gpu", kGauge, 0.75);
  expect(made, "gpu_memory", kGauge, 0.25);
}

TEST(Samples, TgiWithoutTypes_SCI22) {
  const Names names = {{.metric = "queue_depth", .series = "tgi_queue_size"},
                       {.metric = "response_time", .series = "tgi_request_duration"}};
  const Made made = after(names, {"tgi_queue_size 3\ntgi_request_duration_sum 10\ntgi_request_duration_count 4\n",
                                  "tgi_queue_size 1\ntgi_request_duration_sum 16\ntgi_request_duration_count 8\n"});
  expect(made, "queue_depth", kGauge, 1);
  expect(made, "response_time", kGauge, 1.5);
}

TEST(Samples, ASeriesMayNameOneLabel) {
  const auto plain = read_series("load", "a:b_1"), labelled = read_series("errors", "r_total{code=\"5xx\"}");
  EXPECT_EQ(plain, (MetricsConfig::Name{.metric = "load", .series = "a:b_1"}));
  EXPECT_EQ(labelled, (MetricsConfig::Name{.metric = "errors", .series = "r_total", .label = "code", .is = "5xx"}));
  for (const char* bad :
       {"", "1a", "a b", "a{", "a{}", "a{b}", "a{b=c}", "a{b=\"c\"", "a{b=\"c\",d=\"e\"}", "a{b=\"c\"}x"}) {
    EXPECT_FALSE(read_series("load", bad)) << bad;
  }
}

// ---- rules

TEST(Samples, SummariesGoByTheirMeanNotByTheirQuantiles) {
  const Names names = {{.metric = "response_time", .series = "rpc_seconds"}};
  expect(after(names, {"# TYPE rpc_seconds summary\nrpc_seconds{quantile=\"0.5\"} 9\nrpc_seconds_sum 4\n"
                       "rpc_seconds_count 2\n",
                       "# TYPE rpc_seconds summary\nrpc_seconds{quantile=\"0.5\"} 9\nrpc_seconds_sum 7\n"
                       "rpc_seconds_count 3\n"}),
         "response_time", kGauge, 3);
}

TEST(Samples, AGaugeByNameOnlyIfNothingElseIsSaid) {
  const Names names = {{.metric = "custom", .series = "x_total"}};
  expect(after(names, {"x_total 7\n"}), "custom", kCounter, 0);
  expect(after(names, {"# TYPE x_total gauge\nx_total 7\n"}), "custom", kGauge, 7);
}

TEST(Samples, LabelSetsAreFollowedOneByOne) {
  const Names names = {{.metric = "requests", .series = "r_total"}};
  const char* one = "r_total{c=\"a\"} 100\nr_total{c=\"b\"} 50\n";
  // a began anew and counted 3 since, b went on, c is new.
  const char* two = "r_total{c=\"a\"} 3\nr_total{c=\"b\"} 60\nr_total{c=\"c\"} 4\n";
  expect(after(names, {one, two}), "requests", kCounter, 3 + 10 + 4);
  // One that is left out for a scrape is no new one when it comes back.
  expect(after(names, {one, "r_total{c=\"a\"} 101\n", "r_total{c=\"a\"} 102\nr_total{c=\"b\"} 51\n"}), "requests",
         kCounter, 3);
}

TEST(Samples, WhatIsNoNumberIsLeftOut) {
  const Names names = {{.metric = "load", .series = "l"}, {.metric = "cpu", .series = "c"}};
  const Made made = after(names, {"l{n=\"1\"} NaN\nl{n=\"2\"} 2\nc +Inf\n"});
  expect(made, "load", kGauge, 2);
  EXPECT_FALSE(made.contains("cpu"));
}

// One absurd page must not be the last one that counts: above 2^53 a double counts no single requests any more.
TEST(Samples, ACounterGoesOnAfterAnAbsurdNumber) {
  SampleMaker maker(Names{{.metric = "requests", .series = "r_total"}});
  const auto page = [&](double value) {
    return maker.make(std::vector<Series>{{"r_total", {}, value, SeriesType::kCounter}}).at(0).value;
  };
  page(0);
  EXPECT_EQ(page(1e308), 1e308);
  EXPECT_EQ(page(7), 7);  // begun anew, as the instance's own
  EXPECT_EQ(page(9), 9);
}

TEST(Samples, AnUnknownMetricAndAKindThatDoesNotFitAreLeftOut) {
  const Names names = {
      {.metric = "warp", .series = "l"}, {.metric = "load", .series = "l"}, {.metric = "load", .series = "r_total"}};
  const Made made = after(names, {"l 2\nr_total 9\n"});
  EXPECT_EQ(made.size(), 1u);
  expect(made, "load", kGauge, 2);
}

TEST(Samples, NeverBelowNothing) {
  const Names names = {{.metric = "memory", .series = "free", .per = "all", .complement = true}};
  expect(after(names, {"free 12\nall 10\n"}), "memory", kGauge, 0);
  EXPECT_TRUE(after(names, {"free 12\nall 0\n"}).empty());
}

TEST(Samples, LabelSetsThatComeAndGoAreForgotten) {
  SampleMaker maker(Names{{.metric = "requests", .series = "r_total"}});
  double last = 0;
  for (uint32_t i = 0; i < 3; ++i) {
    std::vector<Series> page;
    for (uint32_t n = 0; n < 60'000; ++n) {
      page.push_back({"r_total", {{"id", std::to_string(i) + "/" + std::to_string(n)}}, 1, SeriesType::kCounter});
    }
    last = maker.make(page).at(0).value;
  }
  // 60,000 new ones the second time; at the third there were 120,000 and it looks anew.
  EXPECT_EQ(last, 60'000);
}

TEST(Samples, EachInstanceHasCountersOfItsOwnUntilTheNamesChange) {
  SciSpec sci{.csci_id = "c", .cs_id = "s", .metrics = {.names = {{.metric = "requests", .series = "r_total"}}}};
  sci.instances = {{.id = "a", .address = "10.1.0.11"}, {.id = "b", .address = "10.1.0.12"}};
  const auto page = [](double value) { return std::vector<Series>{{"r_total", {}, value, SeriesType::kCounter}}; };
  SampleMakers makers;
  makers.make(sci, "a", page(100));
  makers.make(sci, "b", page(7));
  EXPECT_EQ(makers.make(sci, "a", page(105)).at(0).value, 5);
  EXPECT_EQ(makers.make(sci, "b", page(9)).at(0).value, 2);
  sci.metrics.names[0].scale = 2;
  EXPECT_EQ(makers.make(sci, "a", page(110)).at(0).value, 0);
  EXPECT_EQ(makers.make(sci, "a", page(111)).at(0).value, 2);
  // A site with other instances: what was there is gone.
  sci.instances = {{.id = "d", .address = "10.1.0.13"}};
  makers.make(sci, "d", page(1));
  makers.make(sci, "d", page(1));
  EXPECT_EQ(makers.make(sci, "a", page(200)).at(0).value, 0);
}

}  // namespace
}  // namespace margay::control
