// SPDX-License-Identifier: Apache-2.0
#pragma once

// RCU as Margay uses it: liburcu's QSBR flavour behind one struct, so that a std::atomic stand-in with the same
// calls can take its place under TSan (tests/support/rcu_stand_in.h), which does not understand liburcu's fences.
//
// Readers (workers) register once, report a quiescent state once a poll, and go offline before anything that may
// block. One writer publishes a pointer and retires what it replaced.

#include <memory>
#include <type_traits>

#include <urcu-qsbr.h>

namespace margay {

struct UrcuQsbr {
  // Reader threads.
  static void register_reader() { urcu_qsbr_register_thread(); }
  static void unregister_reader() { urcu_qsbr_unregister_thread(); }
  static void quiescent() { urcu_qsbr_quiescent_state(); }
  static void online() { urcu_qsbr_thread_online(); }
  static void offline() { urcu_qsbr_thread_offline(); }

  // A pointer that one writer publishes and readers follow.
  template <class T>
  class Pointer {
   public:
    explicit Pointer(T* first) : pointer_(const_cast<Mutable*>(first)) {}
    // Reader, online: valid until its next quiescent state. Pairs with publish().
    T* read() const { return rcu_dereference(pointer_); }
    // Writer: what is reachable from `next` becomes visible with it.
    void publish(T* next) { rcu_assign_pointer(pointer_, const_cast<Mutable*>(next)); }

   private:
    using Mutable = std::remove_const_t<T>;  // liburcu's macro takes no pointer to const
    Mutable* pointer_;
  };

  // Writer: frees `old` once every reader has passed a quiescent state. Never waits for a slow reader.
  template <class T>
  static void retire(std::unique_ptr<T> old) {
    struct Retired {
      rcu_head head;
      std::unique_ptr<T> object;
    };
    auto* retired = new Retired{{}, std::move(old)};
    urcu_qsbr_call_rcu(&retired->head, [](rcu_head* head) {
      delete reinterpret_cast<Retired*>(head);  // head is the first member
    });
  }

  // Writer: returns once all that was retired is freed (at the end of a process).
  static void drain() { urcu_qsbr_barrier(); }
};

}  // namespace margay
