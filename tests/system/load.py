# SPDX-License-Identifier: Apache-2.0
"""HTTP load from the namespace that it is started in: one request a connection, checked, counted by the instance that
answered. Prints one JSON document.

    load.py ADDRESS PORT --total N [--at-once C]   N connections, C at a time
    load.py ADDRESS PORT --seconds S               as many as go, for S seconds or until SIGTERM
    load.py ADDRESS PORT --hold K [--talk]         K connections that stay open until standard input ends; those that
                                                   talk ask again and again, and a second document tells by instance
                                                   how many answers came, how often connections ended and why"""
import argparse
import collections
import errno
import json
import math
import select
import signal
import socket
import sys
import time

REQUEST = b'GET / HTTP/1.1\r\nHost: service\r\nConnection: %s\r\n\r\n'


class Connection:
    def __init__(self, target, keep):
        self.began = time.monotonic()
        self.reply = b''
        self.to_send = REQUEST % (b'keep-alive' if keep else b'close')
        self.socket = socket.socket(socket.AF_INET6 if ':' in target[0] else socket.AF_INET)
        self.socket.setblocking(False)
        error = self.socket.connect_ex(target)
        if error not in (0, errno.EINPROGRESS):
            raise OSError(error, 'connect')

    def go_on(self):
        """None: more to come. Otherwise the end: (instance, None), or (None, what went wrong)."""
        try:
            if self.to_send:
                error = self.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if error:
                    return None, _name(error)
                self.socket.send(self.to_send)
                self.to_send = b''
                return None
            got = self.socket.recv(4096)
        except OSError as e:
            return None, _name(e.errno)
        self.reply += got
        return None if got else self.judge()

    def whole(self):
        head, _, body = self.reply.partition(b'\r\n\r\n')
        return body.endswith(b'\n') and head.startswith(b'HTTP/1.1 200 ')

    def judge(self):
        if not self.whole():
            return None, 'bad reply' if self.reply else 'closed without reply'
        return self.reply.rpartition(b'\r\n\r\n')[2].decode().strip(), None


    def talk(self):
        """Asks once more and takes what has come: (answers, why the connection has ended if it has)."""
        try:
            self.socket.send(REQUEST % b'keep-alive')
            got = self.socket.recv(65536)
        except BlockingIOError:
            return 0, None
        except OSError as e:
            return 0, _name(e.errno)
        return got.count(b'HTTP/1.1 200 '), None if got else 'closed'


def _name(error):
    return errno.errorcode.get(error, str(error))


class Load:
    """Keeps `at_once` connections going until `total` have ended, or all of them are open (hold), or it is time."""

    def __init__(self, target, timeout, hold=False):
        self.target, self.timeout, self.hold = target, timeout, hold
        self.epoll = select.epoll()
        self.open = {}
        self.held = []
        self.result = collections.Counter()
        self.instances = collections.Counter()
        self.slowest = 0.0

    def run(self, total, at_once, seconds):
        self.until = time.monotonic() + seconds
        started = ended = 0
        while ended < total:
            if time.monotonic() > self.until:
                total = started
            while started < total and len(self.open) < at_once:
                started += 1
                ended += self._start()
            for fd, _ in self.epoll.poll(0.1):
                ended += self._go_on(fd)
            ended += self._expire()

    def _start(self):
        """How many connections have ended by it: one that could not even start."""
        try:
            connection = Connection(self.target, self.hold)
        except OSError as e:
            self.result[_name(e.errno)] += 1
            return 1
        fd = connection.socket.fileno()
        self.open[fd] = connection
        self.epoll.register(fd, select.EPOLLOUT)
        return 0

    def _go_on(self, fd):
        connection = self.open[fd]
        asked_already = not connection.to_send
        end = connection.go_on()
        if end is None and self.hold and connection.whole():
            end = connection.judge()
        if end is not None:
            self._end(fd, *end)
            return 1
        if not asked_already:
            self.epoll.modify(fd, select.EPOLLIN)
        return 0

    def _end(self, fd, instance, problem):
        connection = self.open.pop(fd)
        self.epoll.unregister(fd)
        self.slowest = max(self.slowest, time.monotonic() - connection.began)
        if problem:
            self.result[problem] += 1
        else:
            self.result['ok'] += 1
            self.instances[instance] += 1
        if self.hold and not problem:
            self.held.append((instance, connection))
        else:
            connection.socket.close()

    def talk(self):
        """On the connections held, until standard input ends."""
        told = {instance: {'open': 0, 'answers': 0, 'ended': collections.Counter()} for instance in self.instances}
        for instance, _ in self.held:
            told[instance]['open'] += 1
        while not select.select([sys.stdin], [], [], 0.05)[0]:
            for instance, connection in list(self.held):
                answers, problem = connection.talk()
                told[instance]['answers'] += answers
                if problem:
                    self.held.remove((instance, connection))
                    told[instance]['open'] -= 1
                    told[instance]['ended'][problem] += 1
        return told

    def _expire(self):
        oldest = next(iter(self.open.items()), None)
        if oldest is None or time.monotonic() - oldest[1].began < self.timeout:
            return 0
        self._end(oldest[0], None, 'timeout')
        return 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('address')
    parser.add_argument('port', type=int)
    parser.add_argument('--total', type=int, default=sys.maxsize)
    parser.add_argument('--seconds', type=float, default=math.inf)
    parser.add_argument('--at-once', type=int, default=50)
    parser.add_argument('--hold', type=int)
    parser.add_argument('--talk', action='store_true')
    parser.add_argument('--timeout', type=float, default=10)
    args = parser.parse_args()
    load = Load((args.address, args.port), args.timeout, hold=bool(args.hold))
    signal.signal(signal.SIGTERM, lambda *_: setattr(load, 'until', 0))
    began = time.monotonic()
    load.run(args.hold or args.total, args.at_once, args.seconds)
    failures = {k: n for k, n in load.result.items() if k != 'ok'}
    print(json.dumps({'ok': load.result['ok'], 'failed': sum(failures.values()), 'failures': failures,
                      'instances': load.instances, 'seconds': round(time.monotonic() - began, 2),
                      'slowest': round(load.slowest, 3)}), flush=True)
    if args.talk:
        print(json.dumps(load.talk()), flush=True)
    elif args.hold:
        sys.stdin.read()


if __name__ == '__main__':
    main()
