// SPDX-License-Identifier: Apache-2.0

// The whole path on a hit, and the life of new flows, in ticks a packet or a flow: beside a bare loop over the flow
// table and one over rte_hash, in one process, one after the other in turn. README.md says how to read it.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/bare_loop.h"
#include "bench/ticks.h"
#include "bench/traffic.h"
#include "dataplane/core/flow_probe.h"

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_STOP_INSTRUMENTATION
#endif

namespace margay::bench {
namespace {

using nlohmann::json;

struct Options {
  bool as_json = false, quick = false, list = false;
  std::string only, isa, callgrind;
  size_t alternations = 15;
  size_t packets = 1'000'000;  // a turn, at least
  bool peer = true;
};

struct Case {
  std::string name;
  Setup setup;
  enum class Kind : uint8_t { kHit, kSynReset, kConnection } kind;
};

std::string name_of(const Setup& setup) {
  return std::string(setup.family == Family::kIpv4 ? "ipv4" : "ipv6") + " " + std::string(word_of(setup.mode));
}

std::vector<Case> cases(bool quick) {
  std::vector<Case> all;
  const std::map<uint32_t, std::string> sizes =
      quick ? std::map<uint32_t, std::string>{{2'000, "2 k"}}
            : std::map<uint32_t, std::string>{{10'000, "10 k"}, {1'000'000, "1 M"}};
  for (const auto& [flows, text] : sizes) {
    for (const Family family : {Family::kIpv4, Family::kIpv6}) {
      for (const dp::Mode mode : {dp::Mode::kNat, dp::Mode::kL2Dsr, dp::Mode::kIpip, dp::Mode::kGue}) {
        if (is_tunnel(mode) && flows != sizes.begin()->first) continue;
        const Setup setup{family, mode, flows};
        all.push_back({"hit " + name_of(setup) + " " + text, setup, Case::Kind::kHit});
      }
    }
  }
  const uint32_t flows = quick ? 1'024 : 32'768;
  for (const Family family : {Family::kIpv4, Family::kIpv6}) {
    for (const dp::Mode mode : {dp::Mode::kNat, dp::Mode::kL2Dsr}) {
      const Setup setup{family, mode, flows};
      all.push_back({"new " + name_of(setup) + " syn+rst", setup, Case::Kind::kSynReset});
      if (mode != dp::Mode::kNat) continue;
      all.push_back({"new " + name_of(setup) + " 7 packets", setup, Case::Kind::kConnection});
    }
  }
  return all;
}

constexpr size_t kPiece = 32 * dp::kBurstMax;  // packets timed at once: below the length of a time slice by far

void process(Site& site, const Frames& frames, size_t first, size_t count) { site.process(frames, first, count, 0); }
void process(BareLoop& loop, const Frames& frames, size_t first, size_t count) { loop.process(frames, first, count); }

template <class Subject>
double ticks_per_packet(Subject& subject, const Frames& frames, size_t passes) {
  Meter meter;
  for (size_t pass = 0; pass < passes; ++pass) {
    for (size_t first = 0; first < frames.size(); first += kPiece) {
      const size_t count = std::min(kPiece, frames.size() - first);
      meter.time(count, [&] { process(subject, frames, first, count); });
    }
  }
  return meter.per_unit();
}

// Samples of one case, by what was measured.
using Samples = std::map<std::string, std::vector<double>>;

Samples measure_hits(const Case& c, const Options& options) {
  Site site(c.setup);
  const Frames frames = site.establish();
  std::unique_ptr<BareLoop> bare, peer;
  const bool beside = !is_tunnel(c.setup.mode);  // which the bare loop has not
  if (beside) bare = std::make_unique<BareLoop>(c.setup, flow_table_lookup(c.setup));
  if (beside && options.peer) peer = std::make_unique<BareLoop>(c.setup, rte_hash_lookup(c.setup));
  const size_t passes = std::max<size_t>(1, options.packets / frames.size());
  Samples samples;
  for (size_t i = 0; i <= options.alternations; ++i) {
    const double fast = ticks_per_packet(site, frames, passes);
    const double least = bare ? ticks_per_packet(*bare, frames, passes) : 0;
    const double rte = peer ? ticks_per_packet(*peer, frames, passes) : 0;
    if (i == 0) continue;  // warms up
    samples["fast_path"].push_back(fast);
    if (bare) samples["bare_loop"].push_back(least);
    if (peer) samples["bare_loop_rte_hash"].push_back(rte);
  }
  return samples;
}

// New flows, all at the same stage at a time: one packet of each flow, then the next of each.
class NewFlows {
 public:
  explicit NewFlows(const Setup& setup)
      : flows_(setup.flows), site_(setup), frames_(setup.family, setup.flows), instances_(setup.flows) {}

  double syn_and_reset() {
    ticks_ = 0;
    from_clients({dp::kSyn, 1000}, instances_);
    from_clients({dp::kRst, 1001});
    run_timers();
    return ticks_ / flows_;
  }
  // Callgrind counts what is timed, and nothing else, from here on.
  void count() { counting_ = true; }
  double connection() {
    ticks_ = 0;
    from_clients({dp::kSyn, 1000}, instances_);
    from_instances({dp::kSyn | dp::kAck, 5000, 1001});
    from_clients({dp::kAck, 1001, 5001});
    from_clients({dp::kAck | dp::kPsh, 1001, 5001, 10});
    from_clients({dp::kAck | dp::kFin, 1011, 5001});
    from_instances({dp::kAck | dp::kFin, 5001, 1012});
    from_clients({dp::kAck, 1012, 5002});
    run_timers();
    return ticks_ / flows_;
  }

 private:
  void from_clients(const Segment& segment, std::span<dp::InstanceIndex> instances = {}) {
    for (uint32_t i = 0; i < flows_; ++i) frames_.write_from_client(i, i * kStep % flows_, segment);
    process(0, instances);
  }
  void from_instances(const Segment& segment) {
    for (uint32_t i = 0; i < flows_; ++i) {
      frames_.write_from_instance(i, i * kStep % flows_, instances_[i], site_.instance_port(), segment);
    }
    process(1, {});
  }
  void process(dp::PortIndex port, std::span<dp::InstanceIndex> instances) {
    Meter meter;
    if (counting_) CALLGRIND_START_INSTRUMENTATION;
    for (size_t first = 0; first < flows_; first += kPiece) {
      meter.time(kPiece, [&] { site_.process(frames_, first, kPiece, port, instances); });
    }
    if (counting_) CALLGRIND_STOP_INSTRUMENTATION;
    ticks_ += meter.total();
  }
  void run_timers() {
    site_.pass(70 * dp::kSecond);  // beyond every timeout of an ended flow
    Meter meter;
    if (counting_) CALLGRIND_START_INSTRUMENTATION;
    for (bool more = true; more;) meter.time(1, [&] { more = site_.run_timers(); });
    if (counting_) CALLGRIND_STOP_INSTRUMENTATION;
    ticks_ += meter.total();
    MARGAY_CHECK(site_.fast_path().flows() == 0);
  }

  static constexpr uint32_t kStep = 7919;  // odd: every flow once; flows_ is a power of two, and a multiple of kPiece
  uint32_t flows_;
  Site site_;
  Frames frames_;
  std::vector<dp::InstanceIndex> instances_;
  double ticks_ = 0;
  bool counting_ = false;
};

Samples measure_new_flows(const Case& c, const Options& options) {
  NewFlows flows(c.setup);
  Samples samples;
  for (size_t i = 0; i <= options.alternations; ++i) {
    const double t = c.kind == Case::Kind::kSynReset ? flows.syn_and_reset() : flows.connection();
    if (i > 0) samples["fast_path"].push_back(t);
  }
  return samples;
}

json to_json(const Case& c, const Samples& samples, double rate) {
  json result{{"name", c.name}, {"unit", c.kind == Case::Kind::kHit ? "ticks/packet" : "ticks/flow"}};
  for (const auto& [what, values] : samples) {
    result[what] = {{"median", median(values)}, {"deviation", deviation(values)}, {"samples", values}};
  }
  const double fast = result["fast_path"]["median"];
  result["per_second"] = rate / fast;
  for (const char* what : {"bare_loop", "bare_loop_rte_hash"}) {
    if (!samples.contains(what)) continue;
    std::vector<double> ratios;
    for (size_t i = 0; i < samples.at(what).size(); ++i) {
      ratios.push_back(samples.at("fast_path")[i] / samples.at(what)[i]);
    }
    result[std::string("ratio_to_") + what] = median(ratios);
  }
  return result;
}

void print(const json& r) {
  std::printf("%-26s %8.1f +-%5.1f %-12s %6.2f M/s", r["name"].get<std::string>().c_str(),
              r["fast_path"]["median"].get<double>(), r["fast_path"]["deviation"].get<double>(),
              r["unit"].get<std::string>().c_str(), r["per_second"].get<double>() / 1e6);
  if (r.contains("bare_loop")) {
    std::printf("   bare %7.1f (x%.2f)", r["bare_loop"]["median"].get<double>(), r["ratio_to_bare_loop"].get<double>());
  }
  if (r.contains("bare_loop_rte_hash")) {
    std::printf("   with rte_hash %7.1f (x%.2f)", r["bare_loop_rte_hash"]["median"].get<double>(),
                r["ratio_to_bare_loop_rte_hash"].get<double>());
  }
  std::printf("\n");
  std::fflush(stdout);
}

// One pass that callgrind counts, and nothing else; prints how many packets or flows it was (bench/run --instructions).
template <class Subject>
void count_instructions(Subject& subject, const Frames& frames) {
  CALLGRIND_START_INSTRUMENTATION;
  process(subject, frames, 0, frames.size());
  CALLGRIND_STOP_INSTRUMENTATION;
  std::printf("%zu\n", frames.size());
}

// The second turn: the first one has touched all memory.
void count_new_flows(const Case& c) {
  NewFlows flows(c.setup);
  const auto turn = [&] { c.kind == Case::Kind::kSynReset ? flows.syn_and_reset() : flows.connection(); };
  turn();
  flows.count();
  turn();
  std::printf("%u\n", c.setup.flows);
}

void count_instructions(const Case& c, const std::string& what) {
  if (c.kind != Case::Kind::kHit) return count_new_flows(c);
  Site site(c.setup);
  const Frames frames = site.establish();
  if (what == "fast_path" || is_tunnel(c.setup.mode)) return count_instructions(site, frames);
  BareLoop bare(c.setup, flow_table_lookup(c.setup));
  count_instructions(bare, frames);
}

int run(const Options& options) {
  if (!options.isa.empty()) {
    for (const dp::Isa isa : dp::kIsas) {
      if (name_of(isa) == options.isa) dp::select_isa(isa);
    }
    if (name_of(dp::selected_isa()) != options.isa) return 1;
  }
  if (options.peer && options.callgrind.empty() && !options.list) start_eal(512);
  const double rate = ticks_per_second();
  json report{{"ticks_per_second", rate},
              {"isa", name_of(dp::selected_isa())},
              {"rte_hash_in_huge_pages", eal_has_huge_pages()},
              {"cases", json::array()}};
  for (const Case& c : cases(options.quick)) {
    if (c.name.find(options.only) == std::string::npos) continue;
    if (options.list) {
      std::printf("%s\n", c.name.c_str());
    } else if (!options.callgrind.empty()) {
      count_instructions(c, options.callgrind);
    } else {
      const Samples samples = c.kind == Case::Kind::kHit ? measure_hits(c, options) : measure_new_flows(c, options);
      report["cases"].push_back(to_json(c, samples, rate));
      if (!options.as_json) print(report["cases"].back());
    }
  }
  if (options.as_json) std::printf("%s\n", report.dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace margay::bench

int main(int argc, char** argv) {
  margay::bench::Options options;
  CLI::App app{"Ticks per packet of the fast path, beside a bare loop in the same run"};
  app.add_flag("--json", options.as_json, "one JSON object on standard output");
  app.add_flag("--quick", options.quick, "few flows and packets: shows that it runs, measures nothing");
  app.add_flag("--list", options.list, "names of the cases");
  app.add_option("--only", options.only, "cases whose name contains this");
  app.add_option("--isa", options.isa, "scalar, sse2, avx2 or avx512 instead of the best that the CPU has");
  app.add_option("--alternations", options.alternations, "turns measured of each case")->check(CLI::PositiveNumber);
  app.add_option("--packets", options.packets, "packets a turn, at least one pass over all flows");
  app.add_flag("!--no-peer", options.peer, "without rte_hash, and so without EAL");
  app.add_option("--callgrind", options.callgrind, "one pass of fast_path or bare_loop for callgrind")
      ->check(CLI::IsMember({"fast_path", "bare_loop"}));
  CLI11_PARSE(app, argc, argv);
  if (options.quick) {
    options.alternations = 2;
    options.packets = 10'000;
  }
  return margay::bench::run(options);
}
