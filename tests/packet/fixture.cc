// SPDX-License-Identifier: Apache-2.0
#include "tests/packet/fixture.h"

namespace margay::test {
namespace {

template <class Change>
Step changed(const Step& step, Change change) {
  Step copy = step;
  change(copy);
  return copy;
}

Step expecting(const Step& step, dp::Outcome outcome, std::optional<Bytes> bytes) {
  return changed(step, [&](Step& s) {
    s.arrivals.back().expected = outcome;
    s.arrivals.back().expected_bytes = std::move(bytes);
  });
}

dp::SciConfig sci(const std::string& address, const std::string& instance, Protocol protocol) {
  const AddressPort shown = *AddressPort::parse(address), behind = *AddressPort::parse(instance);
  dp::SciConfig s;
  s.csci_id = address;
  s.cs_id = "service";
  s.endpoints = {{shown.address, shown.port, protocol}};
  if (protocol == Protocol::kUdp) s.affinity_timeout = 60 * dp::kSecond;
  dp::InstanceConfig i;
  i.id = "si-1";
  i.address = behind.address;
  i.port = behind.port;
  i.mac = kInstance1;
  i.max_sessions = 100;
  s.instances = {i};
  return s;
}

dp::PortConfig port(const char* name, std::vector<Prefix> addresses) {
  dp::PortConfig p;
  p.name = name;
  p.addresses = std::move(addresses);
  return p;
}

}  // namespace

Step Step::out(dp::PortIndex port, const PacketBuilder& frame) const {
  return expecting(*this, dp::Outcome::transmit(port), frame.build());
}
Step Step::kernel(dp::PortIndex port, const PacketBuilder& frame) const {
  return expecting(*this, dp::Outcome::kernel(port), frame.build());
}
Step Step::drop(DropReason why) const { return expecting(*this, dp::Outcome::drop(why), {}); }
Step Step::consumed() const { return expecting(*this, dp::Outcome::consumed(), {}); }
Step Step::held() const { return expecting(*this, dp::Outcome::held(), {}); }
Step Step::refused(Refusal why) const {
  return changed(*this, [&](Step& s) { s.arrivals.back().refused = why; });
}
Step Step::headroom(uint16_t bytes) const {
  return changed(*this, [&](Step& s) { s.arrivals.back().headroom = bytes; });
}
Step Step::also(dp::PortIndex port, const PacketBuilder& frame) const {
  return changed(*this, [&](Step& s) {
    s.arrivals.push_back({{port, frame.build()}, dp::Outcome::consumed(), {}, {}});
  });
}
Step Step::own(dp::PortIndex port, const PacketBuilder& frame) const {
  return changed(*this, [&](Step& s) { s.own_frames.push_back({port, frame.build()}); });
}
Step Step::released(dp::PortIndex port, const PacketBuilder& frame) const {
  return changed(*this, [&](Step& s) { s.let_go.push_back({{}, dp::Outcome::transmit(port), frame.build(), {}}); });
}
Step Step::given_up(DropReason why) const {
  return changed(*this, [&](Step& s) { s.let_go.push_back({{}, dp::Outcome::drop(why), {}, {}}); });
}
Step Step::leaves(size_t flows, uint64_t slots) const {
  return changed(*this, [&](Step& s) { s.left = {flows, slots}; });
}

Step in(dp::PortIndex port, const PacketBuilder& frame) { return Step{}.also(port, frame); }
Step from_kernel(dp::PortIndex port, const PacketBuilder& frame) {
  return changed(in(port, frame), [](Step& s) { s.from_kernel = true; });
}
Step wait(dp::Nanoseconds time) {
  return changed(Step{}, [&](Step& s) { s.passes = time; });
}
Step change(std::function<void(dp::SiteTable&)> what) {
  return changed(Step{}, [&](Step& s) { s.change = std::move(what); });
}

SiteConfig nat_site() {
  SiteConfig site;
  site.ports = {port("net0", {*Prefix::parse("192.0.2.2/24"), *Prefix::parse("2001:db8::2/64")}),
                port("net1", {*Prefix::parse("10.1.0.2/24"), *Prefix::parse("2001:db8:1::2/64")})};
  site.ports[0].gateways = {ip("192.0.2.1"), ip("2001:db8::1")};
  site.ports[0].neighbours = {{ip("192.0.2.1"), kRouter}, {ip("2001:db8::1"), kRouter}};
  dp::ForwarderConfig forwarder;
  forwarder.port = 0;
  forwarder.mac = kRouter;
  site.forwarders = {forwarder};
  site.scis = {sci("192.0.2.10:80", "10.1.0.11:8080", Protocol::kTcp),
               sci("[2001:db8::10]:80", "[2001:db8:1::11]:8080", Protocol::kTcp),
               sci("192.0.2.10:53", "10.1.0.11:5353", Protocol::kUdp),
               sci("[2001:db8::10]:53", "[2001:db8:1::11]:5353", Protocol::kUdp)};
  return site;
}

SiteConfig dsr_site() {
  return with(nat_site(), [](SiteConfig& c) {
    for (dp::SciConfig& s : c.scis) s.mode = dp::Mode::kL2Dsr;
  });
}

SiteConfig with(SiteConfig site, const std::function<void(SiteConfig&)>& what) {
  what(site);
  return site;
}

}  // namespace margay::test
