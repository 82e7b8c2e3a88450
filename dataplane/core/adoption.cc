// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/adoption.h"

#include <optional>
#include <unordered_map>
#include <variant>
#include <vector>

namespace margay::dp {
namespace {

using shared_table::InstanceRecord;
using shared_table::SciRecord;

// What an instance of the earlier process is now.
struct Successor {
  uint16_t generation = 0;  // that it had
  std::variant<InstanceIndex, LeftOut> now;
};

using Frontends = std::unordered_map<FrontendIndex, FrontendIndex>;
using Instances = std::unordered_map<InstanceIndex, Successor>;

Frontends map_frontends(const SavedTable& saved, const SiteTable& table) {
  Frontends frontends;
  for (const auto& [index, e] : saved.frontends) {
    const FrontendIndex now = table.find_frontend(e.address, to_wire16(e.port), e.protocol);
    if (now != kNoIndex) frontends.emplace(index, now);
  }
  return frontends;
}

std::variant<InstanceIndex, LeftOut> successor_of(const SciRecord& sci, const InstanceRecord& instance,
                                                  const SiteTable& table) {
  const InstanceIndex now = table.instance_by_name(sci.policy.csci_id, instance.config.id);
  if (now == kNoIndex) return LeftOut::kInstanceGone;
  const Instance& i = table.instances[now];
  if (i.address != instance.config.address || i.port != to_wire16(instance.config.port)) return LeftOut::kMoved;
  return now;
}

Instances map_instances(const SavedTable& saved, const SiteTable& table) {
  Instances instances;
  for (const SciRecord& sci : saved.snapshot.scis) {
    for (const InstanceRecord& i : sci.instances) {
      instances.emplace(i.index, Successor{i.generation, successor_of(sci, i, table)});
    }
  }
  return instances;
}

// Has it values that a binding can have?
bool is_sound(const FlowEntry& e) {
  constexpr auto kFlags = static_cast<uint8_t>((kResetByInstance << 1) - 1);
  if (e.adoption != 1 || static_cast<size_t>(e.state) >= kFlowStates || e.state == FlowState::kFree) return false;
  if (e.protocol != (is_tcp(e.state) ? Protocol::kTcp : Protocol::kUdp)) return false;
  if ((e.flags & ~kFlags) != 0 || e.client_port == 0 || !e.client.may_be_host()) return false;
  const bool holds = (e.flags & kHoldsSlot) != 0;
  if (!holds && ((e.flags & kHoldsProvisional) != 0 || !is_tcp(e.state))) return false;
  return !holds || e.state != FlowState::kTimeWait;
}

class Adoption {
 public:
  Adoption(const OpenedImage& image, const SiteTable& table, SharedState& shared, std::span<FastPath* const> workers,
           Tick now)
      : image_(image),
        table_(table),
        shared_(shared),
        workers_(workers),
        shift_(now - image.clock),
        now_(now),
        frontends_(map_frontends(image.table, table)),
        instances_(map_instances(image.table, table)),
        held_(table.instances.size()),
        unproven_(table.instances.size()) {}

  Adopted run() {
    for (const bool transient : {false, true}) {
      for (const FlowEntry& e : image_.entries) {
        if (e.state != FlowState::kFree && is_transient(e.state) == transient) consider(e);
      }
    }
    for (InstanceIndex i = 0; i < table_.instances.size(); ++i) shared_.open_with(table_, i, unproven_[i]);
    return adopted_;
  }

 private:
  void leave_out(LeftOut reason) { ++adopted_.left_out[static_cast<size_t>(reason)]; }

  void consider(const FlowEntry& found) {
    if (found.adoption == 0) return leave_out(LeftOut::kTorn);
    if (!is_sound(found)) return leave_out(LeftOut::kDamaged);
    FlowEntry e = found;
    e.adoption = 0;
    if (const auto reason = translate(e)) return leave_out(*reason);
    const uint64_t client_hash = hash_client(image_.secret, e.client, e.client_port, e.protocol);
    switch (workers_[owner_of(client_hash, workers_.size())]->take_over(e, table_)) {
      case FastPath::TakenOver::kYes:
        return count(e);
      case FastPath::TakenOver::kDuplicate:
        return leave_out(LeftOut::kDuplicate);
      case FastPath::TakenOver::kTableFull:
        return leave_out(LeftOut::kTableFull);
    }
  }

  // From the earlier process's indices and clock to ours; why not, if that cannot be.
  std::optional<LeftOut> translate(FlowEntry& e) const {
    const auto frontend = frontends_.find(e.frontend);
    if (frontend == frontends_.end()) {
      return image_.table.frontends.count(e.frontend) > 0 ? LeftOut::kSciGone : LeftOut::kDamaged;
    }
    const auto instance = instances_.find(e.instance);
    if (instance == instances_.end() || instance->second.generation != e.instance_generation) {
      return LeftOut::kInstanceGone;
    }
    if (const auto* reason = std::get_if<LeftOut>(&instance->second.now)) return *reason;
    e.frontend = frontend->second;
    e.instance = std::get<InstanceIndex>(instance->second.now);
    const Instance& i = table_.instances[e.instance];
    const Frontend& shown = table_.frontends[e.frontend];
    if (shown.sci != i.sci) return LeftOut::kInstanceGone;
    if (shown.endpoint.protocol != e.protocol || shown.endpoint.address.is_v4() != e.client.is_v4()) {
      return LeftOut::kDamaged;
    }
    if (((e.flags & kTwoKeys) != 0) != (i.endpoint != kNoIndex)) return LeftOut::kModeChanged;
    if ((e.flags & kHoldsSlot) != 0 && held_[e.instance] == SlotLedger::kLimitMax) return LeftOut::kDamaged;
    e.instance_generation = i.generation;
    // A slot is given back a moment before the state says so.
    if ((e.flags & kHoldsSlot) == 0) e.state = FlowState::kTimeWait;
    e.last_seen += shift_;
    if (e.state == FlowState::kSynSent) e.instance_next += shift_ * to_microseconds(kTickLength);  // began then
    if (tick_after(e.last_seen, now_)) e.last_seen = now_;
    return {};
  }

  void count(const FlowEntry& e) {
    ++adopted_.bindings;
    if ((e.flags & kHoldsSlot) == 0) return;
    ++adopted_.sessions;
    ++held_[e.instance];
    if ((e.flags & kHoldsProvisional) != 0) ++unproven_[e.instance];
  }

  const OpenedImage& image_;
  const SiteTable& table_;
  SharedState& shared_;
  std::span<FastPath* const> workers_;
  Tick shift_, now_;
  Frontends frontends_;
  Instances instances_;
  std::vector<uint32_t> held_, unproven_;  // slots, provisional slots, by instance
  Adopted adopted_;
};

}  // namespace

std::string_view name_of(LeftOut reason) {
  switch (reason) {
    case LeftOut::kTorn:
      return "torn";
    case LeftOut::kDamaged:
      return "damaged";
    case LeftOut::kSciGone:
      return "sci_gone";
    case LeftOut::kInstanceGone:
      return "instance_gone";
    case LeftOut::kMoved:
      return "instance_moved";
    case LeftOut::kModeChanged:
      return "mode_changed";
    case LeftOut::kDuplicate:
      return "duplicate";
    case LeftOut::kTableFull:
      return "table_full";
  }
  return "unknown";
}

Adopted adopt_bindings(const OpenedImage& image, const SiteTable& table, SharedState& shared,
                       std::span<FastPath* const> workers, Tick now) {
  return Adoption(image, table, shared, workers, now).run();
}

}  // namespace margay::dp
