# SPDX-License-Identifier: Apache-2.0
"""A C-PS that greets its C-SMA, acks its hello, and then reads not one byte more, with all windows open. Prints a line
for each session that it had.

    mute_cps.py PORT CA CERTIFICATE KEY IDENTITY C_SMA"""
import socket
import ssl
import struct
import sys
import time

from grpc_peer import (ACK, DATA, END_HEADERS, HEADERS, SETTINGS, WINDOW_UPDATE, enveloped, field, frame_of, literal,
                       parse)
from many_scis import WIDE

TO_C_SMA = 2
CHALLENGE = b'challenge of c-ps!'
PREFACE = len(b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')


def signed(sender, receiver, challenge, sequence, body):
    """A margay.v1.Signed without a signature."""
    header = (field(1, TO_C_SMA) + field(2, sender) + field(3, receiver) + field(4, challenge) + field(5, sequence) +
              field(6, sequence - 1) + field(7, int(time.time() * 1000) + sequence) +
              field(8, field(1, int(time.time()))))
    return frame_of(DATA, 0, 1, enveloped(field(1, field(1, header) + body)))


class Session:
    def __init__(self, tls):
        self.tls, self.received, self.body = tls, b'', b''
        self.tls.sendall(frame_of(SETTINGS, 0, 0, struct.pack('!HI', 4, WIDE)) +
                         frame_of(WINDOW_UPDATE, 0, 0, struct.pack('!I', WIDE - 65535)))
        self.skip(PREFACE)

    def skip(self, count):
        """So many bytes that come next."""
        while len(self.received) < count:
            data = self.tls.recv(65536)
            if not data:
                raise OSError('connection closed')
            self.received += data
        taken, self.received = self.received[:count], self.received[count:]
        return taken

    def await_frame(self, wanted):
        """The payload of the next such frame."""
        while True:
            head = self.skip(9)
            payload = self.skip(struct.unpack('!I', b'\0' + head[:3])[0])
            if head[3] == SETTINGS and not head[4] & ACK:
                self.tls.sendall(frame_of(SETTINGS, ACK, 0, b''))
            if head[3] == wanted and payload:
                return payload

    def greet(self, identity, c_sma):
        self.await_frame(HEADERS)
        hello = field(1, b'\1') + field(2, 1 << 20) + field(4, CHALLENGE) + field(5, 1)
        headers = literal(':status', '200') + literal('content-type', 'application/grpc')
        self.tls.sendall(frame_of(HEADERS, END_HEADERS, 1, headers) + signed(identity, c_sma, b'', 1, field(2, hello)))
        while len(self.body) < 5 or len(self.body) < 5 + struct.unpack('!I', self.body[1:5])[0]:
            self.body += self.await_frame(DATA)
        advertisement = parse(parse(self.body[5:])[1])
        self.tls.sendall(signed(identity, c_sma, parse(advertisement[2])[4], 2, field(8, field(1, 1))))


def main():
    port, ca, certificate, key, identity, c_sma = sys.argv[1:]
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=ca)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(['h2'])
    kept = []
    with socket.create_server(('', int(port))) as server:
        while True:
            connection, _ = server.accept()
            connection.settimeout(10)
            try:
                session = Session(context.wrap_socket(connection, server_side=True))
                session.greet(identity, c_sma)
            except OSError as e:
                print(f'no session: {e}', file=sys.stderr, flush=True)
                continue
            kept.append(session)
            print('session', flush=True)


if __name__ == '__main__':
    main()
