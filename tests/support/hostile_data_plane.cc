// SPDX-License-Identifier: Apache-2.0
// A data plane that does one thing wrong, to every control plane that connects, until it is ended. For system tests.
//
//   hostile_data_plane SOCKET DEED      see kDeeds; `good` does nothing wrong
//
// Its workers make progress, so that it counts as alive, in the deeds whose comment says so.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/shared_table/counters.h"
#include "tests/support/fake_data_plane.h"

namespace margay::test {
namespace {

using namespace std::chrono_literals;
using control::FakeDataPlane;
using shared_table::CountersShape;
using shared_table::MemoryFile;
using shared_table::Message;
using shared_table::MessageKind;
using shared_table::SendResult;

constexpr size_t kBuffersBytes = shared_table::kBuffers * shared_table::kSnapshotBytesMax;
constexpr CountersShape kShape{.workers = 2, .instances = 64, .scis = 4};

using Deed = std::function<void(FakeDataPlane&)>;

Message hello() {
  Message m;
  m.kind = MessageKind::kHello;
  return m;
}

Fd memory(size_t bytes, int seals) {
  Fd fd(::memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  MARGAY_CHECK(::ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0 && ::fcntl(fd.get(), F_ADD_SEALS, seals) == 0);
  return fd;
}

// Everything that a commit wants, and signs of life.
void behave(FakeDataPlane& p) {
  p.beat();
  p.take();
}

bool there(const FakeDataPlane& p) {
  char byte = 0;
  const ssize_t size = ::recv(p.socket(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return size > 0 || (size < 0 && errno == EAGAIN);
}

// While the control plane is connected, every 10 ms.
void while_there(FakeDataPlane& p, const Deed& each) {
  for (; there(p); std::this_thread::sleep_for(10ms)) each(p);
}

void nothing(FakeDataPlane&) {}

Deed welcomed(const Deed& after) {
  return [after](FakeDataPlane& p) {
    p.welcome();
    after(p);
  };
}

// A welcome with its message spoiled.
Deed spoiled(const std::function<void(Message&)>& spoil) {
  return [spoil](FakeDataPlane& p) {
    p.make_buffers();
    Message m = hello();
    spoil(m);
    p.welcome_with(m, p.buffers().fd(), p.counters_fd());
    while_there(p, nothing);
  };
}

// A welcome with memory of its own making; `shrinks`: after the hand-over, as far as the memory lets it.
Deed lent(const std::function<Fd(FakeDataPlane&)>& buffers, const std::function<Fd(FakeDataPlane&)>& counters,
          bool shrinks = false) {
  return [=](FakeDataPlane& p) {
    p.make_buffers();
    const Fd b = buffers(p), c = counters(p);
    p.welcome_with(hello(), b.get(), c.get());
    if (shrinks) (void)!::ftruncate(b.get(), 0), (void)!::ftruncate(c.get(), 0);
    while_there(p, nothing);
  };
}
Fd right_buffers(FakeDataPlane& p) { return Fd(::dup(p.buffers().fd())); }
Fd right_counters(FakeDataPlane& p) { return Fd(::dup(p.counters_fd())); }
std::function<Fd(FakeDataPlane&)> plain(size_t bytes, int seals) {
  return [=](FakeDataPlane&) { return memory(bytes, seals); };
}

Fd counters_that_say(CountersShape shape) {
  Fd fd = memory(shared_table::counters_bytes(kShape), 0);
  void* at = ::mmap(nullptr, shared_table::counters_bytes(kShape), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  MARGAY_CHECK(at != MAP_FAILED);
  (void)shared_table::make_counters({static_cast<std::byte*>(at), shared_table::counters_bytes(kShape)}, shape);
  ::munmap(at, shared_table::counters_bytes(kShape));
  MARGAY_CHECK(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  return fd;
}

// After the first commit, which it takes and acks.
Deed then_says(MessageKind kind, uint32_t buffer, uint64_t generation) {
  return welcomed([=](FakeDataPlane& p) {
    while (there(p) && !p.take()) std::this_thread::sleep_for(1ms);
    while_there(p, [=](FakeDataPlane& q) { q.say(kind, buffer, generation); });
  });
}

// Alive. The counters of each instance that it was told of are what `number` says, again and again.
Deed counting(const std::function<uint64_t()>& number) {
  return welcomed([number](FakeDataPlane& p) {
    std::map<uint32_t, uint16_t> generations;  // by index
    while_there(p, [&](FakeDataPlane& q) {
      q.beat();
      if (const auto table = q.take()) {
        for (const auto& i : table->scis[0].instances) generations[i.index] = i.generation;
      }
      for (const auto& [index, generation] : generations) {
        q.counters().settings()[index].set((number() & ~uint64_t{0xffff}) | generation);
        for (uint32_t w = 0; w < kShape.workers; ++w) {
          InstanceCounters& c = q.counts(w, index);
          c.generation.set(generation);
          for (Counter* counter : {&c.active, &c.provisional, &c.bindings}) counter->set(number());
          q.times(w, index).responses.sum.set(number());
        }
      }
    });
  });
}

// As fast as the socket takes them.
void flood(FakeDataPlane& p) {
  while (p.say(MessageKind::kStalled, 0, 1) != SendResult::kGone) {
  }
}

// Alive. Four descriptors with each message.
void give_descriptors(FakeDataPlane& p) {
  while_there(p, [](FakeDataPlane& q) {
    const std::array<int, 4> four{q.counters_fd(), q.counters_fd(), q.counters_fd(), q.counters_fd()};
    Message m;
    m.kind = MessageKind::kAck;
    (void)shared_table::send(q.socket(), m, four);
    behave(q);
  });
}

// Alive. Refuses every table, in words that no log or JSON document may take as they are.
void refuse(FakeDataPlane& p) {
  while_there(p, [](FakeDataPlane& q) {
    q.beat();
    if (const auto c = q.commit()) {
      q.say(MessageKind::kRefused, c->message.buffer, c->message.generation, "\xff\xfe\"\nlevel=error msg=\"forged\"");
    }
  });
}

uint64_t random_number() {
  static std::mt19937_64 random(1);
  return random() >> random() % 64;
}

const std::map<std::string, Deed> kDeeds{
    {"good", welcomed([](FakeDataPlane& p) { while_there(p, behave); })},  // alive
    // Welcomes that are none.
    {"silent", [](FakeDataPlane& p) { while_there(p, nothing); }},
    {"closes", nothing},
    {"version", spoiled([](Message& m) { m.version = 9; })},
    {"long-snapshot", spoiled([](Message& m) { m.generation = 1, m.length = ~uint64_t{0}; })},
    {"no-descriptors", [](FakeDataPlane& p) { p.say(MessageKind::kHello, 0, 0), while_there(p, nothing); }},
    {"unsealed-buffers", lent(plain(kBuffersBytes, 0), right_counters, true)},
    {"unsealed-counters", lent(right_buffers, plain(shared_table::counters_bytes(kShape), 0), true)},
    {"short-buffers", lent(plain(4096, F_SEAL_SHRINK), right_counters)},
    {"huge-counters", lent(right_buffers, plain(size_t{1} << 40, F_SEAL_SHRINK))},
    {"few-counters",
     lent(right_buffers,
          [](FakeDataPlane&) { return counters_that_say({.workers = 32, .instances = 64, .scis = 4}); })},
    {"no-memory", lent([](FakeDataPlane&) { return Fd(::open("/dev/zero", O_RDWR | O_CLOEXEC)); }, right_counters)},
    // A welcome, and then something else.
    {"welcomes-and-closes", welcomed(nothing)},
    {"half-a-message", welcomed([](FakeDataPlane& p) { p.say_raw(std::string(100, 'x').data(), 100); })},
    {"frozen", welcomed([](FakeDataPlane& p) { while_there(p, nothing); })},
    {"flood", welcomed(flood)},
    {"ack-ahead", then_says(MessageKind::kAck, 0, 1000)},
    {"ack-back", then_says(MessageKind::kAck, 0, 0)},
    {"answers-twice", then_says(MessageKind::kTaken, 0, 1)},
    {"strange-worker", then_says(MessageKind::kStalled, 99, 1)},
    {"truncates", welcomed([](FakeDataPlane& p) {  // the sealed memory of a right welcome
       MARGAY_CHECK(::ftruncate(p.buffers().fd(), 0) != 0 && ::ftruncate(p.counters_fd(), 0) != 0);
       while_there(p, nothing);
     })},
    // Alive.
    {"no-acks", welcomed([](FakeDataPlane& p) {
       while_there(p, [](FakeDataPlane& q) {
         q.beat();
         if (const auto c = q.commit()) q.say(MessageKind::kTaken, c->message.buffer, c->message.generation);
       });
     })},
    {"descriptors", welcomed(give_descriptors)},
    {"refuses", welcomed(refuse)},
    {"absurd", counting([] { return ~uint64_t{0}; })},
    {"random", counting(random_number)},
};

int main(int argc, char** argv) {
  const auto deed = argc == 3 ? kDeeds.find(argv[2]) : kDeeds.end();
  if (deed == kDeeds.end()) {
    std::cerr << "hostile_data_plane SOCKET DEED, one of:";
    for (const auto& [name, unused] : kDeeds) std::cerr << ' ' << name;
    std::cerr << '\n';
    return 2;
  }
  FakeDataPlane plane(kShape, argv[1]);
  for (;; std::this_thread::sleep_for(1ms)) {
    if (!plane.accept()) continue;
    deed->second(plane);
    plane.close();
  }
}

}  // namespace
}  // namespace margay::test

int main(int argc, char** argv) { return margay::test::main(argc, argv); }
