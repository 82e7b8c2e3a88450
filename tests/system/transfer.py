# SPDX-License-Identifier: Apache-2.0
"""Data from a client to a server that says what has come.

    transfer.py serve PORT                  answers each connection, when it was closed one way, with the digest of all
    transfer.py send ADDRESS PORT BYTES     prints what came of it as JSON
    transfer.py datagrams ADDRESS PORT SIZE sends datagrams of this size, never in fragments, until it is told of a path
                                            MTU that is too small; prints that MTU"""
import hashlib
import json
import random
import socket
import socketserver
import sys
import threading
import time

IP_MTU_DISCOVER, IP_PMTUDISC_DO, IP_MTU = 10, 2, 14
IPV6_MTU_DISCOVER, IPV6_MTU = 23, 24


class Digest(socketserver.BaseRequestHandler):
    def handle(self):
        digest = hashlib.sha256()
        while data := self.request.recv(1 << 16):
            digest.update(data)
        self.request.sendall(digest.hexdigest().encode())


class Server(socketserver.ThreadingTCPServer):
    address_family = socket.AF_INET6  # IPv4 too
    allow_reuse_address = daemon_threads = True


def send(address, port, size):
    data = random.Random(size).randbytes(size)
    with socket.create_connection((address, port), timeout=60) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        answer = b''.join(iter(lambda: s.recv(4096), b'')).decode()
    print(json.dumps({'right': answer == hashlib.sha256(data).hexdigest(), 'answer': answer}))


def datagrams(address, port, size):
    v6 = ':' in address
    level, discover, mtu = ((socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_MTU) if v6 else
                            (socket.IPPROTO_IP, IP_MTU_DISCOVER, IP_MTU))
    s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(level, discover, IP_PMTUDISC_DO)
    s.connect((address, port))
    for _ in range(100):
        try:
            s.send(bytes(size))
        except OSError:
            break  # EMSGSIZE: either what has come back, or that this is too long now
        time.sleep(0.05)
    print(s.getsockopt(level, mtu))


def main():
    what, *words = sys.argv[1:]
    if what == 'serve':
        server = Server(('::', int(words[0])), Digest)
        threading.Thread(target=server.serve_forever).start()
    else:
        {'send': send, 'datagrams': datagrams}[what](words[0], int(words[1]), int(words[2]))


if __name__ == '__main__':
    main()
