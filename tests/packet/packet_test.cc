// SPDX-License-Identifier: Apache-2.0
// Runs the fixture rows (fixture.h) through one worker's fast path.
#include <cctype>
#include <deque>

#include <gtest/gtest.h>

#include "tests/packet/fixture.h"
#include "tests/support/test_arena.h"

namespace margay::test {
namespace {

using dp::Burst;
using dp::Nanoseconds;
using dp::Outcome;
using dp::Verdict;

std::string text(const Outcome& o) {
  switch (o.verdict) {
    case Verdict::kTransmit:
      return "transmit " + std::to_string(o.target);
    case Verdict::kKernel:
      return "kernel " + std::to_string(o.target);
    case Verdict::kHandOver:
      return "hand over " + std::to_string(o.target);
    case Verdict::kHeld:
      return "held";
    case Verdict::kConsumed:
      return "consumed";
    case Verdict::kDrop:
      return "drop " + std::string(text_of(o.reason).name);
  }
  return "?";
}

class Runner {
 public:
  explicit Runner(const Row& row)
      : row_(row),
        table_(build(row.site)),
        shared_(arena_, 1, 16, 16),
        fast_path_(std::make_unique<dp::FastPath>(config(), shared_, arena_, now_)) {
    shared_.open_instances(*table_);
  }

  void run() {
    for (size_t n = 0; n < row_.steps.size(); ++n) {
      SCOPED_TRACE("step " + std::to_string(n + 1));
      step(row_.steps[n]);
    }
    run_out();
  }

 private:
  static std::unique_ptr<dp::SiteTable> build(const SiteConfig& site) {
    const MacAddress macs[] = {kPort0, kPort1};
    return dp::SiteTable::build(site, macs);
  }
  static dp::FastPathConfig config() {
    dp::FastPathConfig c;
    c.flows = 64;
    for (size_t i = 0; i < c.secret.words.size(); ++i) c.secret.words[i] = 0x9e3779b97f4a7c15u * (i + 1);
    return c;
  }

  void step(const Step& s) {
    if (s.change) {
      auto next = table_->clone();
      s.change(*next);
      ++next->version;
      table_ = std::move(next);
    }
    pass(s.passes);
    receive(s);
    fast_path_->tick(*table_, now_);
    release();
    collect_own();
    compare(s.own_frames, own_, "own frame");
    own_.clear();
    ASSERT_EQ(let_go_.size(), s.let_go.size()) << "held packets that went";
    for (size_t i = 0; i < let_go_.size(); ++i) {
      compare(s.let_go[i].expected, s.let_go[i].expected_bytes, let_go_[i].first, let_go_[i].second);
      foretell(s.let_go[i]);
    }
    let_go_.clear();
    compare_counters();
    if (!s.left) return;
    EXPECT_EQ(fast_path_->flows(), s.left->first) << "bindings";
    EXPECT_EQ(slots(), s.left->second) << "slots";
  }

  // As a worker does: ticks of 10 ms.
  void pass(Nanoseconds time) {
    for (const Nanoseconds end = now_ + time; now_ < end;) {
      now_ += dp::kTickLength;
      fast_path_->tick(*table_, now_);
      release();
      collect_own();
    }
  }

  void receive(const Step& s) {
    burst_ = {};
    for (const Arrival& a : s.arrivals) burst_.packets[burst_.count++] = packet_of(a);
    if (burst_.count == 0) return;
    if (s.from_kernel) {
      fast_path_->process_from_kernel(burst_, s.arrivals[0].frame.port, *table_);
    } else {
      fast_path_->process(burst_, *table_, now_);
    }
    for (uint32_t i = 0; i < burst_.count; ++i) {
      SCOPED_TRACE("packet " + std::to_string(i + 1));
      const Arrival& a = s.arrivals[i];
      compare(a.expected, a.expected_bytes, burst_.outcomes[i], bytes_of(burst_.packets[i]));
      foretell(a);
      const Refusal refused = s.from_kernel ? Refusal::kNone : fast_path_->trace(i).refused;
      EXPECT_EQ(text_of(refused).name, text_of(a.refused).name);
    }
  }

  // A buffer as an mbuf has it: room in front, and none of the frame's bytes behind it.
  dp::Packet packet_of(const Arrival& a) {
    const Bytes& bytes = a.frame.bytes;
    buffers_.emplace_back(a.headroom + bytes.size());
    std::copy(bytes.begin(), bytes.end(), buffers_.back().begin() + a.headroom);
    dp::Packet p;
    p.data = buffers_.back().data() + a.headroom;
    p.length = static_cast<uint16_t>(bytes.size());
    p.headroom = a.headroom;
    p.port = a.frame.port;
    return p;
  }
  static Bytes bytes_of(const dp::Packet& p) { return {p.data, p.data + p.length}; }

  void release() {
    Burst held;
    while (fast_path_->release_held(held, *table_, now_)) {
      for (uint32_t i = 0; i < held.count; ++i) let_go_.emplace_back(held.outcomes[i], bytes_of(held.packets[i]));
    }
  }

  void collect_own() {
    for (const dp::Frame& f : fast_path_->outbox()) {
      EXPECT_EQ(f.outcome.verdict, Verdict::kTransmit);
      own_.push_back({f.outcome.target, Bytes(f.bytes.begin(), f.bytes.begin() + f.length)});
    }
    fast_path_->outbox().clear();
  }

  static void compare(const Outcome& expected, const std::optional<Bytes>& expected_bytes, const Outcome& is,
                      const Bytes& bytes) {
    EXPECT_EQ(text(is), text(expected));
    if (expected_bytes && is.verdict == expected.verdict) {
      EXPECT_TRUE(bytes == *expected_bytes) << "expected\n" << hex(*expected_bytes) << "\nis\n" << hex(bytes);
    }
  }
  static void compare(std::vector<PortFrame> expected, std::vector<PortFrame> are, const char* what) {
    std::sort(expected.begin(), expected.end());
    std::sort(are.begin(), are.end());
    for (size_t i = 0; i < std::max(expected.size(), are.size()); ++i) {
      SCOPED_TRACE(what + std::string(" ") + std::to_string(i + 1));
      if (i >= expected.size()) {
        ADD_FAILURE() << "unexpected, port " << int{are[i].port} << '\n' << hex(are[i].bytes);
      } else if (i >= are.size()) {
        ADD_FAILURE() << "missing, port " << int{expected[i].port} << '\n' << hex(expected[i].bytes);
      } else {
        compare(Outcome::transmit(expected[i].port), expected[i].bytes, Outcome::transmit(are[i].port), are[i].bytes);
      }
    }
  }

  void foretell(const Arrival& a) {
    if (a.expected.verdict == Verdict::kDrop) ++dropped_[static_cast<size_t>(a.expected.reason)];
    if (a.refused != Refusal::kNone) ++refused_[static_cast<size_t>(a.refused)];
  }

  void compare_counters() const {
    for (size_t r = 0; r < kDropReasons; ++r) {
      EXPECT_EQ(fast_path_->counters().drops[r].get(), dropped_[r]) << kDropReasonTexts[r].name;
    }
    for (size_t r = 0; r < kRefusals; ++r) {
      EXPECT_EQ(fast_path_->counters().refused[r].get(), refused_[r]) << kRefusalTexts[r].name;
      uint64_t of_scis = 0;
      for (dp::SciIndex s = 0; s < table_->scis.size(); ++s) of_scis += shared_.refused(s, static_cast<Refusal>(r));
      EXPECT_EQ(of_scis, refused_[r]) << kRefusalTexts[r].name;
    }
  }

  uint64_t slots() const {
    uint64_t sum = 0;
    for (dp::InstanceIndex i = 0; i < table_->instances.size(); ++i) sum += shared_.slots.view(i).active;
    return sum;
  }

  void run_out() {
    pass(dp::kSecond);
    for (int n = 0; n < 1000; ++n) {  // longer than any timer, with turns of the wheel between
      now_ += dp::kSecond;
      while (fast_path_->tick(*table_, now_)) {
      }
      release();
      fast_path_->outbox().clear();
    }
    EXPECT_EQ(fast_path_->flows(), 0u);
    EXPECT_EQ(fast_path_->held(), 0u);
    EXPECT_EQ(fast_path_->counters().audit_differences.get(), 0u);
    EXPECT_GT(fast_path_->counters().audit_passes.get(), 0u);
    for (dp::InstanceIndex i = 0; i < table_->instances.size(); ++i) {
      EXPECT_EQ(shared_.slots.view(i).active, 0u);
      EXPECT_EQ(shared_.provisional.view(i).active, 0u);
      EXPECT_EQ(shared_.active(i), 0u);
    }
  }

  const Row& row_;
  Nanoseconds now_ = 100 * dp::kSecond;
  dp::TestArena arena_{1 << 20};
  std::unique_ptr<dp::SiteTable> table_;
  dp::SharedState shared_;
  std::unique_ptr<dp::FastPath> fast_path_;
  Burst burst_;
  std::deque<Bytes> buffers_;
  std::vector<PortFrame> own_;
  std::array<uint64_t, kDropReasons> dropped_{};
  std::array<uint64_t, kRefusals> refused_{};
  std::vector<std::pair<Outcome, Bytes>> let_go_;
};

class PacketTest : public testing::TestWithParam<Row> {};

TEST_P(PacketTest, Row) { std::make_unique<Runner>(GetParam())->run(); }

std::string row_name(const testing::TestParamInfo<Row>& info) {
  std::string name;
  for (const char c : info.param.name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      name += c;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Frame, PacketTest, testing::ValuesIn(frame_rows()), row_name);
INSTANTIATE_TEST_SUITE_P(Forwarding, PacketTest, testing::ValuesIn(forwarding_rows()), row_name);
INSTANTIATE_TEST_SUITE_P(Tunnel, PacketTest, testing::ValuesIn(tunnel_rows()), row_name);
INSTANTIATE_TEST_SUITE_P(TooBig, PacketTest, testing::ValuesIn(too_big_rows()), row_name);
INSTANTIATE_TEST_SUITE_P(Connection, PacketTest, testing::ValuesIn(connection_rows()), row_name);
INSTANTIATE_TEST_SUITE_P(Local, PacketTest, testing::ValuesIn(local_rows()), row_name);

}  // namespace
}  // namespace margay::test
