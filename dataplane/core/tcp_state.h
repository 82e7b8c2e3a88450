// SPDX-License-Identifier: Apache-2.0
#pragma once

// TCP as the SCI sees it pass by (SCI-92, SCI-125), in modes with two directions and in one-way modes, where only
// the client's packets are seen. A table of transitions (tcp_state.cc) over events that were checked against the
// sequence numbers; RFC 9293 §3.3.2 and §3.10 for what they mean.
//
// Sequence fields of an entry: client_next and instance_next are behind the highest byte seen of each side,
// client_acked and instance_acked the highest acknowledgement that each side sent. A RST counts only at the
// very number that its receiver acknowledged last or that its sender has come to (RFC 5961 §3.2); in one-way modes,
// where acknowledgements are unseen, within 64 KiB of the latter. Pure; any thread on its own entry.

#include "dataplane/core/flow_entry.h"
#include "dataplane/core/flow_table.h"
#include "dataplane/core/parse.h"

namespace margay::dp {

struct TcpChange {
  FlowState next;
  bool proven = false;     // the client acknowledged the instance's SYN: not spoofed (D-45)
  bool refreshed = false;  // the idle time starts again
};

// Begins a binding with a client's SYN. Leaves instance_next alone, which nothing here reads before the SYN-ACK sets
// it.
void begin_tcp(FlowEntry& entry, const Parsed& syn);
// Begins one in mid-flow (unknown_flow: adopt), from a packet of the client.
void adopt_tcp(FlowEntry& entry, const Parsed& packet);
// Whether a client's SYN on this binding starts a new connection, so that an instance is selected anew: on a
// closing, closed or reset one, unless it looks like an old duplicate (RFC 9293 §3.6.1).
bool starts_anew(const FlowEntry& entry, const Parsed& syn);
// Takes a packet into the entry's sequence and FIN fields and says what follows. The caller sets the state.
TcpChange track_tcp(FlowEntry& entry, const Parsed& packet, Direction direction, bool two_way);

}  // namespace margay::dp
