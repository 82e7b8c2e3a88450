# SPDX-License-Identifier: Apache-2.0
"""Sends TCP SYNs from an address that nobody has, from as many ports as asked for, and nothing after them.

    syn.py SOURCE DESTINATION PORT COUNT"""
import socket
import struct
import sys


def checksum(data):
    total = sum(struct.unpack(f'!{len(data) // 2}H', data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def syn(source, destination, source_port, port):
    header = struct.pack('!HHIIBBHHH', source_port, port, 1000, 0, 5 << 4, 2, 65535, 0, 0)
    pseudo = source + destination + struct.pack('!BBH', 0, socket.IPPROTO_TCP, len(header))
    tcp = header[:16] + struct.pack('!HH', checksum(pseudo + header), 0)
    ip = struct.pack('!BBHHHBBH', 0x45, 0, 20 + len(tcp), 0, 0, 64, socket.IPPROTO_TCP, 0)
    return ip + source + destination + tcp


def main():
    source, destination = (socket.inet_aton(a) for a in sys.argv[1:3])
    port, count = map(int, sys.argv[3:5])
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as s:
        for n in range(count):
            s.sendto(syn(source, destination, 20000 + n, port), (sys.argv[2], 0))


if __name__ == '__main__':
    main()
