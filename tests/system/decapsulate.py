# SPDX-License-Identifier: Apache-2.0
"""The instance's end of a tunnel where the kernel has none: takes IP in IP and GUE off and gives what is inside to the
kernel by a TUN device. Prints "ready", and when it is ended what it has seen of outer headers as JSON.

    decapsulate.py GUE_PORT"""
import collections
import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454ca, 1, 0x1000
SO_RCVBUFFORCE, UDP_NO_CHECK6_RX = 33, 102
IPV4_IN_IP, IPV6_IN_IP = 4, 41


def open_tun(name):
    tun = os.open('/dev/net/tun', os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack('16sH22x', name.encode(), IFF_TUN | IFF_NO_PI))
    subprocess.run(['ip', 'link', 'set', name, 'up', 'mtu', '9000'], check=True)
    return tun


def listen(gue_port):
    """{socket: how to take its packets apart}"""
    sockets = {}
    for protocol in (IPV4_IN_IP, IPV6_IN_IP):
        sockets[socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol)] = behind_ipv4
        sockets[socket.socket(socket.AF_INET6, socket.SOCK_RAW, protocol)] = lambda data, p=protocol: (p, data)
    for family, address in ((socket.AF_INET, '0.0.0.0'), (socket.AF_INET6, '::')):
        s = socket.socket(family, socket.SOCK_DGRAM)
        if family == socket.AF_INET6:
            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            s.setsockopt(socket.IPPROTO_UDP, UDP_NO_CHECK6_RX, 1)
        s.bind((address, gue_port))
        sockets[s] = behind_gue
    for s in sockets:
        s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 23)
    return sockets


def behind_ipv4(data):
    return data[9], data[(data[0] & 15) * 4:]


def behind_gue(data):
    """draft-ietf-intarea-gue §3: the variant stands in the first two bits."""
    variant = data[0] >> 6
    if variant == 0 and not data[0] & 0x20:
        return data[1], data[4 + (data[0] & 0x1f) * 4:]
    if variant == 1:
        return None, data
    raise ValueError(f'GUE of variant {variant}')


def main():
    tun, sockets, seen = open_tun('tunnel'), listen(int(sys.argv[1])), collections.Counter()
    sources, ports, unknown = set(), set(), []
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    print('ready', flush=True)
    while not ended:
        for s in select.select(list(sockets), [], [], 0.2)[0]:
            data, source = s.recvfrom(65535)
            try:
                protocol, inner = sockets[s](data)
                family = 'ipv4' if inner[0] >> 4 == 4 else 'ipv6'
                if protocol not in (None, IPV4_IN_IP if family == 'ipv4' else IPV6_IN_IP):
                    raise ValueError(f'{family} is announced as {protocol}')
                os.write(tun, inner)
            except (ValueError, IndexError, OSError) as e:
                unknown.append(str(e))
                continue
            seen[family] += 1
            sources.add(source[0])
            if s.type == socket.SOCK_DGRAM:
                ports.add(source[1])
    print(json.dumps({'inner': seen, 'sources': sorted(sources), 'ports': sorted(ports), 'unknown': unknown[:10]}))


if __name__ == '__main__':
    main()
