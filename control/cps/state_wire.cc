// SPDX-License-Identifier: Apache-2.0
#include "control/cps/state_wire.h"

#include <algorithm>

#include "control/northbound/wire/advertisement.h"
#include "control/northbound/wire/row_wire.h"
#include "margay/v1/c_ps_state.pb.h"

namespace margay::cps {
namespace {

using control::WireReader;
using northbound::put;
using northbound::take;

// In a saved row `measured_at` is an age; in one that is written down it is a time.
void put_row(const SavedRow& saved, Nanoseconds now, v1::SavedRow& out) {
  northbound::Row row = saved.row;
  row.measured_at = now - saved.row.measured_at;
  northbound::to_wire(row, now, *out.mutable_row());
  // A clock that was set may say that a process ended long before its time.
  control::put(std::min(saved.received_ago, WireReader::kLongest), *out.mutable_received_ago());
}

SavedRow take_row(WireReader& reader, const v1::SavedRow& in, Nanoseconds now) {
  SavedRow saved{.row = take(reader, in.row(), now)};
  saved.row.measured_at = now - saved.row.measured_at;
  saved.received_ago = reader.duration("received_ago", in.received_ago());
  return saved;
}

void put_part(const SavedPart& part, Nanoseconds now, v1::SavedPart& out) {
  out.set_cs_id(part.cs_id);
  put(part.floor, *out.mutable_floor());
  if (part.position) put(*part.position, *out.mutable_position());
  for (const SavedRow& row : part.rows) put_row(row, now, *out.add_rows());
  for (const northbound::Withdrawal& tombstone : part.tombstones) put(tombstone, *out.add_tombstones());
}

SavedPart take_part(WireReader& reader, const v1::SavedPart& in, Nanoseconds now) {
  SavedPart part;
  part.cs_id = northbound::take_id(reader, "cs_id", in.cs_id());
  part.floor = {in.floor().epoch(), in.floor().commit()};  // of a table that is whole: (0, 0)
  if (in.has_position()) part.position = take(reader, "position", in.position());
  for (const v1::SavedRow& row : in.rows()) part.rows.push_back(take_row(reader, row, now));
  for (const v1::Withdrawal& tombstone : in.tombstones()) part.tombstones.push_back(take(reader, tombstone));
  return part;
}

}  // namespace

std::string bytes_of(const SavedState& state, Nanoseconds now) {
  v1::CPsState out;
  control::put_unix_ms(state.unix_ms, *out.mutable_saved());
  for (const SavedSite& site : state.sites) {
    v1::SavedSite& saved = *out.add_sites();
    saved.set_c_sma(site.c_sma);
    saved.set_epoch(site.epoch);
    for (const SavedPart& part : site.parts) put_part(part, now, *saved.add_parts());
    for (const auto& [key_id, highest] : site.nonces) {
      v1::SavedNonce& nonce = *saved.add_nonces();
      nonce.set_key_id(key_id);
      nonce.set_highest(highest);
    }
  }
  return out.SerializeAsString();
}

Result<SavedState> state_of(const std::string& bytes, Nanoseconds now) {
  v1::CPsState in;
  if (!in.ParseFromString(bytes)) return Error{"is no margay.v1.CPsState"};
  WireReader reader;
  SavedState state{.unix_ms = control::unix_ms_of(in.saved()), .sites = {}};
  for (const v1::SavedSite& saved : in.sites()) {
    SavedSite& site = state.sites.emplace_back();
    site.c_sma = saved.c_sma();
    site.epoch = saved.epoch();
    for (const v1::SavedPart& part : saved.parts()) site.parts.push_back(take_part(reader, part, now));
    for (const v1::SavedNonce& nonce : saved.nonces()) site.nonces.emplace_back(nonce.key_id(), nonce.highest());
  }
  if (!reader.fault().empty()) return Error{reader.fault()};
  return state;
}

}  // namespace margay::cps
