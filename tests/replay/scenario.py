# SPDX-License-Identifier: Apache-2.0
"""The traffic of the replay tests, on the site of site.yaml: what clients behind the forwarder and instances send.
Which instance a flow gets is not known here, so every candidate answers each flow: the answers of those that do not
have it are strays, to be dropped. Each payload is unique, so that a packet can be found again in the output."""

import itertools
import random
from dataclasses import dataclass, field

import packets as p

START = 1_700_000_000 * 10**9
MS = 10**6
MALFORMED = (START + 1500 * MS, START + 30_000 * MS)  # between these times nothing exact is expected

FORWARDER = p.mac("02:00:00:00:00:01")
PORT_MAC = {"net0": p.mac("02:00:00:00:0f:00"), "net1": p.mac("02:00:00:00:1f:01"), "net2": p.mac("02:00:00:00:0f:02")}
VLAN = {"net0": 0, "net1": 0, "net2": 100}


@dataclass
class Service:
    address: str
    port: int
    instances: tuple          # (address, MAC)
    instance_port: int
    side: str = "net1"        # port that instances are on


WEB = Service("192.0.2.10", 80, (("10.1.0.11", "02:00:00:01:00:11"), ("10.1.0.12", "02:00:00:01:00:12")), 8080)
WEB6 = Service("2001:db8::10", 80,
               (("2001:db8:1::11", "02:00:00:06:00:11"), ("2001:db8:1::12", "02:00:00:06:00:12")), 8080)
TAGGED = Service("192.0.2.20", 80, (("10.2.0.11", "02:00:00:02:00:11"),), 8080, "net2")
DNS = Service("192.0.2.10", 53, (("10.1.0.21", "02:00:00:01:00:21"), ("10.1.0.22", "02:00:00:01:00:22")), 5353)
DNS6 = Service("2001:db8::20", 53, (("2001:db8:1::21", "02:00:00:06:00:21"),), 53)
DIRECT = Service("192.0.2.30", 443, (("10.1.0.31", "02:00:00:01:00:31"),), 443)
TUNNEL = Service("192.0.2.60", 443, (("2001:db8:1::61", "02:00:00:06:00:61"),), 443)
SMALL = Service("192.0.2.40", 80, (("10.1.0.41", "02:00:00:01:00:41"),), 8080)
SILENT = Service("192.0.2.50", 80, (("10.1.0.51", ""),), 8080)
SERVICES = (WEB, WEB6, TAGGED, DNS, DNS6, DIRECT, TUNNEL, SMALL, SILENT)


def ip_ethertype(packet):
    return 0x0800 if packet[0] >> 4 == 4 else 0x86DD


@dataclass
class Scenario:
    seed: int
    frames: list = field(default_factory=list)       # (time, port, frame)
    forwarded: set = field(default_factory=set)      # payloads of clients that must come out at an instance, once
    answered: set = field(default_factory=set)       # payloads of instances that must come out at the client, once
    expected: list = field(default_factory=list)     # ((time, port, frame), verdict, reason or None)
    marks: int = 0

    def __post_init__(self):
        self.random = random.Random(self.seed)

    def mark(self):
        self.marks += 1
        return b"payload-%06d" % self.marks

    def add(self, time, port, packet, source=FORWARDER, destination=None, ethertype=None):
        frame = p.ethernet(source, destination or PORT_MAC[port], ethertype or ip_ethertype(packet), packet, VLAN[port])
        self.frames.append((time, port, frame))
        return self

    def expect(self, verdict, reason=None):
        """Of the frame added last."""
        self.expected.append((self.frames[-1], verdict, reason))

    def merged(self):
        """In the order in which replay has to take them: by time, then port, then place in the port's capture."""
        return sorted(self.frames, key=lambda f: f[:2])

    def of_port(self, port):
        return [(time, frame) for time, name, frame in self.merged() if name == port]


class Connection:
    """One TCP connection of a client with a service; each method is one step, 100 microseconds later."""

    def __init__(self, scenario, time, service, client, client_port, isn=None):
        self.s, self.time, self.service = scenario, time, service
        self.client, self.client_port = p.address(client), client_port
        self.isn = scenario.random.getrandbits(32) if isn is None else isn
        self.client_next, self.instance_next = self.isn, 0x10000000
        self.vip = p.address(service.address)

    def from_client(self, flags, payload=b""):
        self.time += MS // 10
        self.s.add(self.time, "net0", p.tcp(self.client, self.vip, (self.client_port, self.service.port),
                                            self.client_next, self.instance_next if flags & p.ACK else 0, flags,
                                            payload))
        self.client_next += len(payload) + bool(flags & p.SYN) + bool(flags & p.FIN)

    def from_instances(self, flags, payload=b""):
        self.time += MS // 10
        for address, mac in self.service.instances:
            self.s.add(self.time, self.service.side,
                       p.tcp(p.address(address), self.client, (self.service.instance_port, self.client_port),
                             self.instance_next, self.client_next, flags, payload), source=p.mac(mac))
        self.instance_next += len(payload) + bool(flags & p.SYN) + bool(flags & p.FIN)

    def open(self):
        self.from_client(p.SYN)
        self.from_instances(p.SYN | p.ACK)
        self.from_client(p.ACK)
        return self

    def talk(self):
        question, answer = self.s.mark(), self.s.mark()
        self.from_client(p.ACK | p.PSH, question)
        self.from_instances(p.ACK | p.PSH, answer)
        self.from_client(p.ACK)
        self.s.forwarded.add(question)
        self.s.answered.add(answer)
        return self

    def close(self):
        self.from_client(p.ACK | p.FIN)
        self.from_instances(p.ACK | p.FIN)
        self.from_client(p.ACK)
        return self


def client_of(service, n):
    return f"2001:db8:c::{n:x}" if ":" in service.address else f"198.51.100.{n}"


def add_neighbours(s):
    """Every next hop but SILENT's tells its address by ARP or ND."""
    for time in (START, START + 6000 * MS):
        own4, own6 = p.address("192.0.2.2"), p.address("2001:db8::2")
        s.add(time, "net0", p.arp(2, FORWARDER, p.address("192.0.2.1"), PORT_MAC["net0"], own4), ethertype=0x0806)
        s.add(time, "net0", p.neighbour_advertisement(FORWARDER, p.address("2001:db8::1"), own6))
        for service in SERVICES:
            for address, text in service.instances:
                if not text:
                    continue
                mac, packed = p.mac(text), p.address(address)
                if len(packed) == 4:
                    own = p.address("10.1.0.2" if service.side == "net1" else "10.2.0.2")
                    reply = p.arp(2, mac, packed, PORT_MAC[service.side], own)
                    s.add(time, service.side, reply, source=mac, ethertype=0x0806)
                else:
                    s.add(time, "net1", p.neighbour_advertisement(mac, packed, p.address("2001:db8:1::2")), source=mac)


def add_tcp(s, time):
    for n in range(1, 41):  # whole connections
        for service in (WEB, WEB6, TAGGED):
            Connection(s, time + n * 7 * MS, service, client_of(service, n), 20000 + n).open().talk().talk().close()
    for n in range(41, 51):  # ended by a reset of the client, or of the instance
        for service in (WEB, WEB6, TAGGED):
            c = Connection(s, time + n * 7 * MS, service, client_of(service, n), 20000 + n).open().talk()
            if n % 2:
                c.from_client(p.RST)
            else:
                c.from_instances(p.RST | p.ACK)
    for n in range(51, 61):  # the same port again soon after FIN, with a higher initial sequence number
        for service in (WEB, WEB6, TAGGED):
            c = Connection(s, time + n * 7 * MS, service, client_of(service, n), 30000, isn=1000).open().talk().close()
            Connection(s, c.time + 20 * MS, service, client_of(service, n), 30000, isn=900000).open().talk().close()
    for n in range(61, 71):  # left open, never answered, in mid-flow
        for service in (WEB, WEB6, TAGGED):
            client = client_of(service, n)
            Connection(s, time + n * 7 * MS, service, client, 20000 + n).open().talk()
            Connection(s, time + n * 7 * MS, service, client, 40000 + n).from_client(p.SYN)
            Connection(s, time + n * 7 * MS, service, client, 50000 + n).from_client(p.ACK, s.mark())


def add_direct(s, time):
    """One-way: instances answer past us. Adopts what is in mid-flow."""
    for n, service in itertools.product(range(1, 31), (DIRECT, TUNNEL)):
        c = Connection(s, time + n * 5 * MS, service, client_of(service, n), 20000 + n)
        if n % 3:
            c.from_client(p.SYN)
        for _ in range(3):
            question = s.mark()
            c.from_client(p.ACK, question)
            s.forwarded.add(question)
        c.from_client(p.ACK | p.FIN)


def add_refused(s, time):
    """More connections than SMALL has slots for; and some to the instance that no ARP finds."""
    for n in range(1, 11):
        Connection(s, time + n * MS, SMALL, client_of(SMALL, n), 20000 + n).open()
    for n in range(1, 4):
        Connection(s, time + n * MS, SILENT, client_of(SILENT, n), 20000 + n).from_client(p.SYN)


def add_udp(s, time):
    for n in range(1, 61):
        for service in (DNS, DNS6):
            client, at = p.address(client_of(service, n)), time + n * 3 * MS
            question = s.mark()
            s.add(at, "net0", p.udp(client, p.address(service.address), (30000 + n, 53), question))
            s.forwarded.add(question)
            if n % 3 == 0:
                continue
            answer = s.mark()
            s.answered.add(answer)
            for address, mac in service.instances:
                s.add(at + MS, "net1", p.udp(p.address(address), client, (service.instance_port, 30000 + n), answer),
                      source=p.mac(mac))


def add_odd(s, time):
    """Fragments, ICMP, ARP and ND to us, packets for the kernel, a stranger as forwarder, a wrong VLAN."""
    client, vip, own = p.address("198.51.100.200"), p.address("192.0.2.10"), p.address("192.0.2.2")
    client6, vip6 = p.address("2001:db8:c::200"), p.address("2001:db8::10")
    whole = p.udp(client, vip, (4000, 53), bytes(64))[20:]

    def on_net0(packet, verdict, reason=None, **how):
        s.add(time, "net0", packet, **how).expect(verdict, reason)

    on_net0(p.ip(client, vip, p.UDP, whole[:32], fragment=0x2000), "drop", "fragment")
    on_net0(p.ip(client, vip, p.UDP, whole[32:], fragment=4), "drop", "fragment")
    on_net0(p.ip(client6, vip6, 44, bytes([p.TCP, 0, 0, 1, 0, 0, 0, 7]) + bytes(32)), "drop", "fragment")
    on_net0(p.ip(client6, vip6, 0, bytes([p.TCP, 0, 1, 4, 0, 0, 0, 0]) + bytes(32)), "drop", "ipv6_extension_header")
    on_net0(p.echo_request(client, vip), "answer")
    on_net0(p.echo_request(client, own), "answer")
    on_net0(p.arp(1, FORWARDER, p.address("192.0.2.77"), bytes(6), vip), "consumed", destination=b"\xff" * 6,
            ethertype=0x0806)
    on_net0(p.neighbour_solicitation(FORWARDER, p.address("2001:db8::77"), vip6), "consumed",
            destination=p.mac("33:33:ff:00:00:10"))
    on_net0(p.tcp(client, own, (4000, 22), 1, 0, p.SYN), "kernel")
    on_net0(bytes(50), "kernel", ethertype=0x88CC)
    on_net0(p.tcp(client, vip, (4000, 81), 1, 0, p.SYN), "drop", "no_such_service")
    on_net0(p.tcp(client, vip, (4001, 80), 1, 0, p.SYN), "drop", "unauthorised_forwarder",
            source=p.mac("02:00:00:00:00:66"))
    on_net0(p.tcp(client, vip, (4002, 80), 1, 0, p.SYN), "drop", "not_our_mac", destination=p.mac("02:00:00:00:00:67"))
    untagged = p.ethernet(p.mac("02:00:00:02:00:11"), PORT_MAC["net2"], 0x0800,
                          p.tcp(p.address("10.2.0.11"), client, (8080, 4000), 1, 1, p.ACK))
    s.frames.append((time, "net2", untagged))
    s.expect("drop", "vlan_mismatch")


def add_malformed(s, time, count):
    """Frames of the scenario so far with some bits turned or the end cut off."""
    models = list(s.frames)
    for n in range(count):
        _, port, frame = s.random.choice(models)
        frame = bytearray(frame)
        if n % 2:
            frame = frame[:s.random.randrange(len(frame))]
        else:
            for _ in range(s.random.randrange(1, 4)):
                frame[s.random.randrange(len(frame))] ^= 1 << s.random.randrange(8)
        s.frames.append((time + n // 4 * MS, port, bytes(frame)))  # four at a time: bursts


def add_on_link(s, time):
    """Clients on net0's own network: their MAC is nowhere in the captures."""
    for n, service in enumerate((WEB, WEB6, TAGGED)):
        client = "2001:db8::99" if ":" in service.address else f"192.0.2.{99 + n}"
        Connection(s, time + n * MS, service, client, 20000).open().talk().close()


def make_without_neighbours(seed):
    s = Scenario(seed)
    add_tcp(s, START + 100 * MS)
    add_direct(s, START + 200 * MS)
    add_udp(s, START + 400 * MS)
    add_on_link(s, START + 1000 * MS)
    return s


def make(seed):
    s = Scenario(seed)
    add_neighbours(s)
    add_tcp(s, START + 100 * MS)
    add_direct(s, START + 200 * MS)
    add_refused(s, START + 300 * MS)
    add_udp(s, START + 400 * MS)
    add_odd(s, START + 1000 * MS)
    add_malformed(s, MALFORMED[0], 1000)
    add_udp(s, MALFORMED[1])  # long after everything has run out
    return s


def write(scenario, directory):
    """One capture a port, each in another format. Returns {port: file}."""
    files = {port: str(directory / f"{port}-in.pcap") for port in PORT_MAC}
    p.write_pcap(files["net0"], scenario.of_port("net0"))
    p.write_pcap(files["net1"], scenario.of_port("net1"), nanoseconds=True)
    p.write_pcapng(files["net2"], scenario.of_port("net2"))
    return files
