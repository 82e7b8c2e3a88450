// SPDX-License-Identifier: Apache-2.0
#include "control/c_sma/streams.h"

#include <algorithm>

namespace margay::c_sma {

Streams::Claim Streams::claim(const std::string& csci_id, const std::string& identity, StreamId stream,
                              Nanoseconds now) {
  if (const auto mine = csci_ids_.find(stream); mine != csci_ids_.end()) {
    return mine->second == csci_id ? Claim{} : Claim{.refusal = Refusal::kOtherCsciId};
  }
  const auto found = live_.find(csci_id);
  const bool taken = found != live_.end() && found->second.stream != 0;
  if (taken && found->second.identity != identity) return {.refusal = Refusal::kSecondStream};
  if (stream == 0) return {};
  Live& live = live_[csci_id];
  Claim claim;
  if (taken) claim = take_over(live, now);
  if (claim.refusal) return claim;
  live.identity = identity;
  bind(live, csci_id, stream);
  return claim;
}

Streams::Claim Streams::take_over(Live& live, Nanoseconds now) {
  if (now < live.not_before) return {.refusal = Refusal::kTakeOverTooOften};
  if (now - live.first_at > kSpan) {
    live.take_overs = 0;
    live.first_at = now;
    live.backoff = 0;
  }
  Claim claim{.closed = live.stream};
  if (++live.take_overs > kTakeOvers) {
    claim.alarm = live.backoff == 0;
    live.backoff = std::clamp(2 * live.backoff, kBackoff, kBackoffMax);
    live.not_before = now + live.backoff;
    live.first_at = live.not_before;
  }
  return claim;
}

void Streams::bind(Live& live, const std::string& csci_id, StreamId stream) {
  if (live.stream != 0) csci_ids_.erase(live.stream);
  live.stream = stream;
  csci_ids_[stream] = csci_id;
}

void Streams::closed(StreamId stream) {
  const auto found = csci_ids_.find(stream);
  if (found == csci_ids_.end()) return;
  live_[found->second].stream = 0;
  csci_ids_.erase(found);
}

std::optional<StreamId> Streams::of(const std::string& csci_id) const {
  const auto found = live_.find(csci_id);
  if (found == live_.end() || found->second.stream == 0) return std::nullopt;
  return found->second.stream;
}

std::vector<StreamId> Streams::of_identity(const std::string& identity) const {
  std::vector<StreamId> all;
  for (const auto& [csci_id, live] : live_) {
    if (live.stream != 0 && live.identity == identity) all.push_back(live.stream);
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace margay::c_sma
