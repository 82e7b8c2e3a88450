// SPDX-License-Identifier: Apache-2.0
#include "control/collection/http/presets.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace margay::control {
namespace {

using Names = std::vector<MetricsConfig::Name>;

// Prometheus node_exporter, collectors cpu, meminfo, diskstats, netdev, loadavg and netstat (its README; the names are
// those since 0.16). What is idle is counted per core and mode, so the sum over all modes is the time of all cores.
const Names& node() {
  static const Names kNames = {
      {.metric = "cpu",
       .series = "node_cpu_seconds_total",
       .label = "mode",
       .is = "idle",
       .per = "node_cpu_seconds_total",
       .complement = true},
      {.metric = "memory",
       .series = "node_memory_MemAvailable_bytes",
       .per = "node_memory_MemTotal_bytes",
       .complement = true},
      {.metric = "disk_io", .series = "node_disk_read_bytes_total"},
      {.metric = "disk_io", .series = "node_disk_written_bytes_total"},
      {.metric = "network_io", .series = "node_network_receive_bytes_total"},
      {.metric = "network_io", .series = "node_network_transmit_bytes_total"},
      {.metric = "load", .series = "node_load1"},
      {.metric = "connections", .series = "node_netstat_Tcp_CurrEstab"},
  };
  return kNames;
}

// vLLM, "Production Metrics" of its documentation, engine V1. Its counters get the suffix _total from its library. The
// memory that its requests compete for is the KV cache.
const Names& vllm() {
  static const Names kNames = {
      {.metric = "gpu_memory", .series = "vllm:kv_cache_usage_perc"},
      {.metric = "queue_depth", .series = "vllm:num_requests_waiting"},
      {.metric = "connections", .series = "vllm:num_requests_running"},
      {.metric = "response_time", .series = "vllm:e2e_request_latency_seconds"},
      {.metric = "requests", .series = "vllm:request_success_total"},  // ended for any reason
      {.metric = "errors", .series = "vllm:request_success_total", .label = "finished_reason", .is = "error"},
      {.metric = "input_tokens", .series = "vllm:request_prompt_tokens"},
  };
  return kNames;
}

// NVIDIA Triton Inference Server, "Metrics" of its user guide. Utilisation is a share of one there too.
const Names& triton() {
  static const Names kNames = {
      {.metric = "cpu", .series = "nv_cpu_utilization"},
      {.metric = "memory", .series = "nv_cpu_memory_used_bytes", .per = "nv_cpu_memory_total_bytes"},
      {.metric = "gpu", .series = "nv_gpu_utilization"},
      {.metric = "gpu_memory", .series = "nv_gpu_memory_used_bytes", .per = "nv_gpu_memory_total_bytes"},
      {.metric = "queue_depth", .series = "nv_inference_pending_request_count"},
      {.metric = "response_time",
       .series = "nv_inference_request_duration_us",
       .per = "nv_inference_request_success",
       .scale = 1e-6},
      {.metric = "requests", .series = "nv_inference_request_success"},
      {.metric = "requests", .series = "nv_inference_request_failure"},
      {.metric = "errors", .series = "nv_inference_request_failure"},
  };
  return kNames;
}

// Hugging Face Text Generation Inference, "Metrics" of its reference.
const Names& tgi() {
  static const Names kNames = {
      {.metric = "queue_depth", .series = "tgi_queue_size"},
      {.metric = "connections", .series = "tgi_batch_current_size"},
      {.metric = "response_time", .series = "tgi_request_duration"},
      {.metric = "requests", .series = "tgi_request_count"},
      {.metric = "errors", .series = "tgi_request_failure"},
      {.metric = "input_tokens", .series = "tgi_request_input_length"},
  };
  return kNames;
}

constexpr std::string_view kWords[] = {"node", "vllm", "triton", "tgi"};
constexpr const Names& (*kPresets[])() = {node, vllm, triton, tgi};
static_assert(std::size(kWords) == std::size(kPresets));

}  // namespace

std::span<const std::string_view> preset_names() { return kWords; }

std::span<const MetricsConfig::Name> find_preset(std::string_view name) {
  const auto found = std::find(std::begin(kWords), std::end(kWords), name);
  if (found == std::end(kWords)) return {};
  return kPresets[found - std::begin(kWords)]();
}

}  // namespace margay::control
