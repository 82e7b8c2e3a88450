# SPDX-License-Identifier: Apache-2.0
"""An SCI's end of margay.v1.Collection/Push that sends what it is told, byte for byte: a report again, an old one, one
that is torn. Speaks just enough of HTTP/2 and gRPC.

    grpc_peer.py ADDRESS PORT CA CERTIFICATE KEY
        a line of standard input is one message in hexadecimal; prints the C-SMA's answers, a JSON object a line, until
        standard input ends and each message has its answer, or the stream ends"""
import json
import os
import select
import socket
import ssl
import struct
import sys
import time

DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
VERDICTS = ('UNSPECIFIED', 'ACCEPTED', 'FLAGGED', 'QUARANTINED', 'REFUSED')
FULL, PERIODIC, HEALTH, ENABLED = 1, 1, 4, 1        # of report.proto


# Protobuf, as far as a report goes.

def varint(n):
    out = b''
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    """An integer, a text, or a message that is bytes already."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def report(csci_id, cs_id, epoch, sequence, gas, at=None, health=(1, 0, 0, 0), reputation=None, trigger=PERIODIC):
    """A full margay.v1.Report. `at`: Unix seconds, now by default. `health`: of the summary, how many are
    healthy, degraded, unhealthy and of these unknown."""
    at = time.time() if at is None else at
    when = field(1, int(at)) + field(2, int(at % 1 * 1e9))
    summary = b''.join(field(1 + n, count) for n, count in enumerate(health))
    return (field(1, csci_id) + field(2, cs_id) + field(3, when) + field(4, epoch) + field(5, sequence) +
            field(6, FULL) + field(7, trigger) + field(9, field(1, 1)) + field(10, gas) + field(15, summary) +
            (b'' if reputation is None else field(17, reputation)) + field(19, ENABLED))


def parse(data):
    """A message's fields by number, the last of each."""
    fields, at = {}, 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = number()
        if key & 7 == 0:
            fields[key >> 3] = number()
        elif key & 7 == 2:
            size = number()
            fields[key >> 3] = data[at:at + size]
            at += size
        else:
            raise ValueError(f'wire type {key & 7}')
    return fields


def told(reply):
    """A margay.v1.CollectionReply, readable."""
    fields = parse(reply)
    if 1 not in fields:
        return {'pull': True}
    ack = parse(fields[1])
    return {'epoch': ack.get(1, 0), 'sequence': ack.get(2, 0), 'verdict': VERDICTS[ack.get(3, 0)],
            'reason': ack.get(4, b'').decode()}


# HTTP/2

def literal(name, value):
    return b'\x00' + b''.join(bytes([len(text)]) + text.encode() for text in (name, value))


def frame_of(kind, flags, stream, payload):
    return struct.pack('!I', len(payload))[1:] + bytes([kind, flags]) + struct.pack('!I', stream) + payload


def enveloped(message):
    """As gRPC frames it."""
    return b'\0' + struct.pack('!I', len(message)) + message


class Stream:
    """The first one of a connection."""

    def __init__(self, address, port, ca, certificate, key):
        context = ssl.create_default_context(cafile=ca)
        context.check_hostname = False
        context.load_cert_chain(certificate, key)
        context.set_alpn_protocols(['h2'])
        self.socket = context.wrap_socket(socket.create_connection((address, int(port)), timeout=10))
        self.received, self.body, self.stream = b'', b'', 0
        self.headers = b''.join(literal(*header) for header in (
            (':method', 'POST'), (':scheme', 'https'), (':path', '/margay.v1.Collection/Push'),
            (':authority', address), ('content-type', 'application/grpc'), ('te', 'trailers')))
        self.socket.sendall(b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
        self.frame(SETTINGS, 0, 0, b'')
        self.frame(HEADERS, END_HEADERS, 1, self.headers)

    def frame(self, *frame):
        self.socket.sendall(frame_of(*frame))

    def send(self, message):
        self.frame(DATA, 0, 1, enveloped(message))

    def finish(self):
        self.frame(DATA, END_STREAM, 1, b'')

    def frames(self):
        """What has come: (kind, flags, payload), of `self.stream`. Waits for it."""
        data = self.socket.recv(65536)
        if not data:
            raise OSError('connection closed')
        self.received += data
        while len(self.received) >= 9:
            size = struct.unpack('!I', b'\0' + self.received[:3])[0]
            if len(self.received) < 9 + size:
                return
            kind, flags, payload = self.received[3], self.received[4], self.received[9:9 + size]
            self.stream = struct.unpack('!I', self.received[5:9])[0]
            self.received = self.received[9 + size:]
            yield kind, flags, payload

    def replies(self):
        """Messages that have come. Raises OSError when the stream has ended."""
        for kind, flags, payload in self.frames():
            if kind in (SETTINGS, PING) and not flags & ACK:
                self.frame(kind, ACK, 0, payload if kind == PING else b'')
            elif kind in (RST_STREAM, GOAWAY):
                raise OSError('stream reset')
            elif kind == DATA:
                self.body += payload
                while len(self.body) >= 5 and len(self.body) >= 5 + (size := struct.unpack('!I', self.body[1:5])[0]):
                    yield self.body[5:5 + size]
                    self.body = self.body[5 + size:]
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                raise OSError('the C-SMA ended the stream')


def main():
    open_answers, reading, rest = 0, True, b''
    try:
        stream = Stream(*sys.argv[1:])
        while reading or open_answers:
            ready = [] if stream.socket.pending() else select.select(
                [stream.socket, *([sys.stdin] if reading else [])], [], [])[0]
            if sys.stdin in ready:
                data = os.read(0, 65536)
                *lines, rest = (rest + data).split(b'\n')
                reading = bool(data)
                for line in lines:
                    stream.send(bytes.fromhex(line.decode()))
                    open_answers += 1
            elif ready or stream.socket.pending():
                for reply in stream.replies():
                    answer = told(reply)
                    open_answers -= 'pull' not in answer
                    print(json.dumps(answer), flush=True)
    except OSError as e:
        print(json.dumps({'ended': str(e)}), flush=True)


if __name__ == '__main__':
    main()
