// SPDX-License-Identifier: Apache-2.0
#pragma once

// First packets of flows, as they come in and as they leave to an instance.

#include "tests/packet/fixture.h"

namespace margay::test {

inline const PacketBuilder kOpen = from_router(tcp("198.51.100.7:40000", "192.0.2.10:80").flags(kSyn).seq(1000));
inline const PacketBuilder kOpenOut = kOpen.to("10.1.0.11:8080").ether(kPort1, kInstance1).ttl(63);
inline const PacketBuilder kOpen6 =
    from_router(tcp("[2001:db8:99::7]:40000", "[2001:db8::10]:80").flags(kSyn).seq(1000));
inline const PacketBuilder kOpen6Out = kOpen6.to("[2001:db8:1::11]:8080").ether(kPort1, kInstance1).ttl(63);
inline const PacketBuilder kQuery = from_router(udp("198.51.100.7:40000", "192.0.2.10:53").payload("query"));
inline const PacketBuilder kQueryOut = kQuery.to("10.1.0.11:5353").ether(kPort1, kInstance1).ttl(63);
inline const PacketBuilder kQuery6 = from_router(udp("[2001:db8:99::7]:40000", "[2001:db8::10]:53").payload("query"));

}  // namespace margay::test
