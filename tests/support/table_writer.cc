// SPDX-License-Identifier: Apache-2.0
// A control plane without a head, for system tests: commits the SCIs of a site file, changed by commands, and does what
// no control plane may do. One command a line on standard input, one JSON line back for each.
//
//   table_writer SOCKET SITE_FILE
//
//   running                  what ran when we connected: its generation, and the health of each instance
//   health SI-ID STATE       of that instance in every SCI from the next commit on: healthy, degraded, unhealthy,
//                            unknown
//   commit                   the whole site as the next generation; waits for its ack, or its refusal
//   storm SECONDS RATE       after a commit: so many changes a second (tests/support/table_storm.h)
//   hostile DEED             see kDeeds

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "common/monotonic.h"
#include "common/shared_table/writer.h"
#include "common/site/site_reader.h"
#include "common/unix_socket.h"
#include "tests/support/table_storm.h"

namespace margay::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using shared_table::MemoryFile;
using shared_table::Message;
using shared_table::MessageKind;
using shared_table::Received;
using shared_table::Snapshot;
using shared_table::Writer;

constexpr auto kPatience = 10s;

// Every instance HEALTHY.
Snapshot snapshot_of(const SiteConfig& site) {
  Snapshot snapshot;
  snapshot.generation = 1;
  uint32_t instances = 0;
  for (const SciConfig& sci : site.scis) {
    shared_table::SciRecord& record = snapshot.scis.emplace_back();
    record.index = static_cast<uint32_t>(snapshot.scis.size() - 1);
    record.policy = sci;
    for (const InstanceConfig& config : sci.instances) {
      shared_table::InstanceRecord& instance = record.instances.emplace_back();
      instance.index = instances++;
      instance.health = HealthState::kHealthy;
      instance.health_since = monotonic_now();
      instance.limit = config.max_sessions;
      instance.config = config;
    }
  }
  return snapshot;
}

// A connection that was welcomed and then speaks without a Writer's care.
struct Raw {
  Fd socket;
  MemoryFile buffers;
  int counters;  // as it came, for as long as the process lives
  uint64_t running;

  std::span<std::byte> put(std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), buffers.bytes().begin());
    return buffers.bytes().first(bytes.size());
  }
  static Message commit_of(std::span<const std::byte> bytes, uint64_t generation) {
    Message m;
    m.kind = MessageKind::kCommit;
    m.generation = generation;
    m.length = bytes.size();
    m.checksum = shared_table::checksum(bytes);
    return m;
  }
  // The next answer that is no ack: "taken", the reason of a refusal, or "closed".
  std::string answer() const {
    for (const auto until = std::chrono::steady_clock::now() + kPatience; std::chrono::steady_clock::now() < until;) {
      const Received r = shared_table::receive(socket.get());
      if (r.state == Received::State::kClosed) return "closed";
      if (r.state == Received::State::kNothing) {
        std::this_thread::sleep_for(1ms);
      } else if (r.message.kind == MessageKind::kRefused) {
        return std::string(r.message.said());
      } else if (r.message.kind == MessageKind::kTaken) {
        return "taken";
      }
    }
    return "no answer";
  }
  std::string ask(const Message& m) const {
    if (shared_table::send(socket.get(), m) != shared_table::SendResult::kSent) return "closed";
    return answer();
  }
};

class Control {
 public:
  Control(std::string path, const SiteConfig& site) : path_(std::move(path)), next_(snapshot_of(site)) {}

  json run(const std::string& line) {
    std::istringstream words(line);
    std::string command, first, second;
    words >> command >> first >> second;
    if (command == "running") return running();
    if (command == "health") return health(first, second);
    if (command == "commit") return commit();
    if (command == "storm") return storm(std::stod(first), static_cast<uint32_t>(std::stoul(second)));
    if (command == "hostile") return {{"deed", first}, {"answer", hostile(first)}};
    return {{"error", "no such command"}};
  }

 private:
  Writer& writer() {
    if (writer_ == nullptr) {
      auto connected = Writer::connect(path_, kPatience);
      if (!connected) throw std::runtime_error(connected.error().message);
      writer_ = std::move(*connected);
      if (writer_->running()) next_ = *writer_->running(), ++next_.generation;
    }
    return *writer_;
  }

  json running() {
    const auto& found = writer().running();
    json told = {{"generation", found ? found->generation : 0}, {"health", json::object()}};
    if (!found) return told;
    for (const auto& sci : found->scis) {
      for (const auto& i : sci.instances) told["health"][i.config.id] = name_of(i.health);
    }
    return told;
  }

  json health(const std::string& id, const std::string& state) {
    static const std::map<std::string, HealthState> kStates{{"healthy", HealthState::kHealthy},
                                                            {"degraded", HealthState::kDegraded},
                                                            {"unhealthy", HealthState::kUnhealthy},
                                                            {"unknown", HealthState::kUnknown}};
    (void)writer();
    size_t changed = 0;
    for (auto& sci : next_.scis) {
      for (auto& i : sci.instances) {
        if (i.config.id != id) continue;
        i.health = kStates.at(state);
        i.health_since = monotonic_now();
        i.limit = limit_of(i.health, i.config.max_sessions, Share(sci.policy.degradation_factor));
        ++changed;
      }
    }
    return {{"changed", changed}};
  }

  json commit() {
    const uint64_t generation = next_.generation++;
    Snapshot s = next_;
    s.generation = generation;
    if (!writer().commit(s)) return {{"error", "no buffer is free"}};
    for (const auto until = std::chrono::steady_clock::now() + kPatience; std::chrono::steady_clock::now() < until;) {
      const Writer::News news = writer_->news();
      if (!news.refused.empty()) return {{"generation", generation}, {"refused", news.refused[0].why}};
      if (news.gone) return {{"error", "the data plane closed the connection: " + news.why}};
      if (news.acked && *news.acked >= generation) return {{"generation", generation}, {"acked", true}};
      std::this_thread::sleep_for(1ms);
    }
    return {{"generation", generation}, {"acked", false}};
  }

  json storm(double seconds, uint32_t rate) {
    Snapshot running = next_;
    --running.generation;
    json told = TableStorm(writer(), running).run(seconds, rate);
    next_ = std::move(running);
    ++next_.generation;
    return told;
  }

  // Deeds each have a connection of their own.

  Raw connect_raw() {
    writer_.reset();
    for (const auto until = std::chrono::steady_clock::now() + kPatience;;) {
      auto socket = connect_unix(path_, SOCK_SEQPACKET);
      if (!socket) throw std::runtime_error(socket.error().message);
      Received hello;
      while ((hello = shared_table::receive(socket->get(), 2)).state == Received::State::kNothing) {
        std::this_thread::sleep_for(1ms);
      }
      if (hello.descriptors.size() == 2) {
        const int counters = ::dup(hello.descriptors[1].get());
        auto buffers =
            MemoryFile::adopt(std::move(hello.descriptors[0]), shared_table::kBuffers * shared_table::kSnapshotBytesMax,
                              MemoryFile::Writers::kBoth);
        if (!buffers) throw std::runtime_error(buffers.error().message);
        return {std::move(*socket), std::move(*buffers), counters, hello.message.generation};
      }
      if (std::chrono::steady_clock::now() > until) throw std::runtime_error("not welcomed");
      std::this_thread::sleep_for(5ms);  // the connection before has not ended yet
    }
  }

  std::string hostile(const std::string& deed) {
    const auto found = kDeeds.find(deed);
    if (found == kDeeds.end()) return "no such deed";
    Raw raw = connect_raw();
    Snapshot s = next_;
    s.generation = raw.running + 1;
    return found->second(*this, raw, s);
  }

  using Deed = std::function<std::string(Control&, Raw&, Snapshot&)>;

  // Commits an encoded snapshot whose bytes and message were spoiled.
  static Deed spoiled(std::function<void(std::vector<std::byte>&)> bytes_of, std::function<void(Message&)> message_of) {
    return [=](Control&, Raw& raw, Snapshot& s) {
      std::vector<std::byte> bytes = shared_table::encode(s);
      bytes_of(bytes);
      Message m = Raw::commit_of(raw.put(bytes), s.generation);
      message_of(m);
      return raw.ask(m);
    };
  }
  // Commits a snapshot that says something wrong.
  static Deed wrong(std::function<void(Snapshot&)> spoil) {
    return [=](Control&, Raw& raw, Snapshot& s) {
      spoil(s);
      return raw.ask(Raw::commit_of(raw.put(shared_table::encode(s)), s.generation));
    };
  }

  static void nothing_of(Message&) {}
  static void nothing_with(std::vector<std::byte>&) {}

  // A thousand commits while another thread changes the buffer; how many were neither taken nor refused.
  static std::string edit_while_checked(Control&, Raw& raw, Snapshot& s) {
    std::atomic<bool> stop{false};
    const std::vector<std::byte> right = shared_table::encode(s);
    raw.put(right);
    std::thread editor([&] {
      for (size_t n = 0; !stop; ++n) {
        std::byte& at = raw.buffers.bytes()[n * 7919 % right.size()];
        at ^= std::byte{0x41};
        at ^= std::byte{0x41};
      }
    });
    size_t taken = 0, refused = 0, other = 0;
    for (int n = 0; n < 1000; ++n) {
      const std::string answer = raw.ask(Raw::commit_of(right, s.generation));
      ++(answer == "taken" ? taken : answer == "closed" || answer == "no answer" ? other : refused);
    }
    stop = true;
    editor.join();
    return other == 0 && taken <= 1 ? "each taken or refused" : "not each was taken or refused";
  }

  static std::string truncate(Control&, Raw& raw, Snapshot&) {
    const bool buffers = ::ftruncate(raw.buffers.fd(), 0) != 0 && errno == EPERM;
    const bool counters = ::ftruncate(raw.counters, 0) != 0 && errno == EPERM;
    const bool sealed = ::mmap(nullptr, 4096, PROT_WRITE, MAP_SHARED, raw.counters, 0) == MAP_FAILED && errno == EPERM;
    return buffers && counters && sealed ? "sealed" : "not sealed";
  }

  // Commits, and reads no answer until the data plane parts.
  static std::string read_nothing(Control&, Raw& raw, Snapshot& s) {
    const Message m = Raw::commit_of(raw.put(shared_table::encode(s)), 0);
    for (const auto until = std::chrono::steady_clock::now() + kPatience; std::chrono::steady_clock::now() < until;) {
      if (shared_table::send(raw.socket.get(), m) == shared_table::SendResult::kGone) return "closed";
    }
    return "still there";
  }

  static std::string connect_twice(Control& control, Raw&, Snapshot&) {
    auto second = Writer::connect(control.path_, kPatience);
    return second ? "welcomed" : second.error().message.substr(control.path_.size() + 2);
  }

  static std::string half_a_message(Control&, Raw& raw, Snapshot&) {
    const Message m;
    if (::send(raw.socket.get(), &m, 100, MSG_NOSIGNAL) != 100) return "not sent";
    return raw.answer();
  }

  static std::string strange_message(Control&, Raw& raw, Snapshot& s) {
    Message m = Raw::commit_of({}, s.generation);
    m.version = 99;
    return raw.ask(m);
  }

  static const std::map<std::string, Deed> kDeeds;

  std::string path_;
  Snapshot next_;
  std::unique_ptr<Writer> writer_;
};

const std::map<std::string, Control::Deed> Control::kDeeds{
    {"buffer", spoiled(nothing_with, [](Message& m) { m.buffer = 7; })},
    {"length", spoiled(nothing_with, [](Message& m) { m.length = shared_table::kSnapshotBytesMax + 1; })},
    {"short", spoiled([](auto& bytes) { bytes.resize(bytes.size() - 1); }, nothing_of)},
    {"long", spoiled([](auto& bytes) { bytes.push_back({}); }, nothing_of)},
    {"checksum", spoiled(nothing_with, [](Message& m) { ++m.checksum; })},
    {"version", spoiled([](auto& bytes) { bytes[4] = std::byte{99}; }, nothing_of)},
    {"other-generation", spoiled(nothing_with, [](Message& m) { ++m.generation; })},
    {"old-generation", wrong([](Snapshot& s) { s.generation = 1; })},
    {"index", wrong([](Snapshot& s) { s.scis[0].instances[0].index = 65'535; })},
    {"health", wrong([](Snapshot& s) { s.scis[0].instances[0].health = static_cast<HealthState>(9); })},
    {"limit",
     wrong([](Snapshot& s) { s.scis[0].instances[0].limit = s.scis[0].instances[0].config.max_sessions + 1; })},
    {"moved", wrong([](Snapshot& s) { s.scis[0].instances[0].config.address = *IpAddress::parse("192.0.2.10"); })},
    {"address", wrong([](Snapshot& s) {
       shared_table::InstanceRecord far = s.scis[0].instances[0];
       far.index = 500;
       far.config.id = "si-x";
       far.config.address = *IpAddress::parse("192.0.2.10");
       s.scis[0].instances.push_back(far);
     })},
    {"edit", edit_while_checked},
    {"truncate", truncate},
    {"deaf", read_nothing},
    {"twice", connect_twice},
    {"half", half_a_message},
    {"message-version", strange_message},
};

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const auto site = read_site_file(argv[2]);
  if (!site) {
    std::cerr << site.error().message << '\n';
    return 1;
  }
  Control control(argv[1], *site);
  for (std::string line; std::getline(std::cin, line);) {
    json told;
    try {
      told = control.run(line);
    } catch (const std::exception& e) {
      told = {{"error", e.what()}};
    }
    std::cout << told << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace margay::test

int main(int argc, char** argv) { return margay::test::main(argc, argv); }
