# SPDX-License-Identifier: Apache-2.0
"""Frames and captures from bytes alone: written and read here without any code of the data plane, so that what the
tests expect is judged by the RFCs and not by our own output."""

import ipaddress
import struct
from dataclasses import dataclass

ICMP, TCP, UDP, ICMPV6 = 1, 6, 17, 58
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
GUE = (UDP, "2001:db8:1::2", 6080)


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def address(text):
    return ipaddress.ip_address(text).packed


def checksum(data):
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def pseudo_header(source, destination, protocol, length):
    if len(source) == 4:
        return source + destination + struct.pack("!BBH", 0, protocol, length)
    return source + destination + struct.pack("!IxxxB", length, protocol)


def with_checksum(segment, offset, source, destination, protocol):
    value = checksum(pseudo_header(source, destination, protocol, len(segment)) + segment)
    if protocol == UDP and value == 0:
        value = 0xFFFF
    return segment[:offset] + struct.pack("!H", value) + segment[offset + 2:]


def ethernet(source, destination, ethertype, payload, vlan=0):
    tag = struct.pack("!HH", 0x8100, vlan) if vlan else b""
    return destination + source + tag + struct.pack("!H", ethertype) + payload


def ip(source, destination, protocol, payload, ttl=64, fragment=0):
    """IPv4 or IPv6 by the addresses; `fragment` is IPv4's flags and offset field."""
    if len(source) == 4:
        header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 7, fragment, ttl, protocol, 0)
        header += source + destination
        return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + payload
    return struct.pack("!IHBB", 6 << 28, len(payload), protocol, ttl) + source + destination + payload


def tcp(source, destination, ports, sequence, acknowledgement, flags, payload=b""):
    segment = struct.pack("!HHIIBBHHH", *ports, sequence & 0xFFFFFFFF, acknowledgement & 0xFFFFFFFF, 5 << 4, flags,
                          65535, 0, 0) + payload
    return ip(source, destination, TCP, with_checksum(segment, 16, source, destination, TCP))


def udp(source, destination, ports, payload):
    datagram = struct.pack("!HHHH", *ports, 8 + len(payload), 0) + payload
    return ip(source, destination, UDP, with_checksum(datagram, 6, source, destination, UDP))


def arp(operation, sender_mac, sender, target_mac, target):
    return struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation) + sender_mac + sender + target_mac + target


def neighbour_advertisement(sender_mac, sender, destination):
    message = struct.pack("!BBHI", 136, 0, 0, 0x60000000) + sender + b"\x02\x01" + sender_mac
    return ip(sender, destination, ICMPV6, with_checksum(message, 2, sender, destination, ICMPV6), ttl=255)


def neighbour_solicitation(sender_mac, sender, target):
    destination = address("ff02::1:ff00:0")[:13] + target[13:]
    message = struct.pack("!BBHI", 135, 0, 0, 0) + target + b"\x01\x01" + sender_mac
    return ip(sender, destination, ICMPV6, with_checksum(message, 2, sender, destination, ICMPV6), ttl=255)


def echo_request(source, destination):
    message = struct.pack("!BBHHH", 8, 0, 0, 1, 1) + b"ping"
    return ip(source, destination, ICMP, message[:2] + struct.pack("!H", checksum(message)) + message[4:])


@dataclass
class Read:
    """What a forwarded TCP or UDP frame says, its checksums having been verified."""
    time: int
    source_mac: bytes
    destination_mac: bytes
    vlan: int
    source: str
    destination: str
    protocol: int
    ports: tuple
    flags: int
    payload: bytes
    bytes: bytes


def read_frame(time, frame):
    """None for anything but a whole TCP segment or UDP datagram. Of what the SCI sends by GUE, what is inside."""
    at, vlan = 14, 0
    ethertype = struct.unpack_from("!H", frame, 12)[0]
    if ethertype == 0x8100:
        vlan, ethertype = struct.unpack_from("!HH", frame, 14)
        at = 18
    if ethertype == 0x0800:
        header = (frame[at] & 15) * 4
        length, protocol = struct.unpack_from("!H", frame, at + 2)[0], frame[at + 9]
        source, destination = frame[at + 12:at + 16], frame[at + 16:at + 20]
        if checksum(frame[at:at + header]) != 0:
            raise AssertionError(f"IPv4 header checksum: {frame.hex()}")
    elif ethertype == 0x86DD:
        header, length, protocol = 40, 40 + struct.unpack_from("!H", frame, at + 4)[0], frame[at + 6]
        source, destination = frame[at + 8:at + 24], frame[at + 24:at + 40]
    else:
        return None
    segment = frame[at + header:at + length]
    if protocol == TCP:
        data, flags = (segment[12] >> 4) * 4, segment[13] & 0x3F
    elif protocol == UDP:
        data, flags = 8, 0
    else:
        return None
    if (protocol, str(ipaddress.ip_address(source)), struct.unpack_from("!H", segment, 2)[0]) == GUE:
        inner = ethernet(frame[6:12], frame[:6], 0x0800, behind_gue(segment), vlan)
        if transport_checksum_right(frame) != transport_checksum_right(inner):
            raise AssertionError(f"outer UDP checksum: {frame.hex()}")
        return read_frame(time, inner)
    return Read(time, frame[6:12], frame[:6], vlan, str(ipaddress.ip_address(source)),
                str(ipaddress.ip_address(destination)), protocol, struct.unpack_from("!HH", segment), flags,
                segment[data:], frame)


def behind_gue(datagram):
    """The IPv4 packet in it: draft-ietf-intarea-gue §3.2, variant 0 without options; RFC 6335 §6 for the port."""
    source_port, _, length = struct.unpack_from("!HHH", datagram)
    if source_port < 0xC000 or length != len(datagram) or datagram[8:12] != b"\0\x04\0\0":
        raise AssertionError(f"no right GUE: {datagram.hex()}")
    return datagram[12:]


def transport_checksum_right(frame):
    """Whether the TCP or UDP checksum of an untagged or tagged frame holds."""
    at = 18 if frame[12:14] == b"\x81\x00" else 14
    if frame[at] >> 4 == 4:
        header, length, protocol = (frame[at] & 15) * 4, struct.unpack_from("!H", frame, at + 2)[0], frame[at + 9]
        source, destination = frame[at + 12:at + 16], frame[at + 16:at + 20]
    else:
        header, length, protocol = 40, 40 + struct.unpack_from("!H", frame, at + 4)[0], frame[at + 6]
        source, destination = frame[at + 8:at + 24], frame[at + 24:at + 40]
    segment = frame[at + header:at + length]
    return checksum(pseudo_header(source, destination, protocol, len(segment)) + segment) == 0


# Captures: lists of (time in nanoseconds, frame).

def write_pcap(path, frames, nanoseconds=False, link_type=1, snap=65535):
    magic, unit = (0xA1B23C4D, 1) if nanoseconds else (0xA1B2C3D4, 1000)
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", magic, 2, 4, 0, 0, 65535, link_type))
        for time, frame in frames:
            kept = frame[:snap]
            seconds, rest = divmod(time, 10**9)
            out.write(struct.pack("<IIII", seconds, rest // unit, len(kept), len(frame)) + kept)


def write_pcapng(path, frames):
    """One Ethernet interface, nanoseconds."""
    def block(kind, body):
        body += b"\0" * (-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    with open(path, "wb") as out:
        out.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
        out.write(block(1, struct.pack("<HHI", 1, 0, 65535) + struct.pack("<HHBxxxHH", 9, 1, 9, 0, 0)))
        for time, frame in frames:
            head = struct.pack("<IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(frame), len(frame))
            out.write(block(6, head + frame))


def read_pcap(path):
    """Nanosecond pcap, little endian: what replay writes."""
    with open(path, "rb") as file:
        data = file.read()
    magic, link_type = struct.unpack_from("<I16xI", data)
    if magic != 0xA1B23C4D or link_type != 1:
        raise AssertionError(f"{path}: not a nanosecond Ethernet capture")
    frames, at = [], 24
    while at < len(data):
        seconds, rest, kept, length = struct.unpack_from("<IIII", data, at)
        if kept != length:
            raise AssertionError(f"{path}: frame cut off")
        frames.append((seconds * 10**9 + rest, data[at + 16:at + 16 + kept]))
        at += 16 + kept
    return frames
