# SPDX-License-Identifier: Apache-2.0
"""Many SCIs that report over one connection, each on its stream; their GAS is another in each report. Ends with the
connection.

    many_scis.py ADDRESS PORT CA CERTIFICATE KEY CS_ID COUNT RATE
        RATE: reports a second, of all together"""
import itertools
import select
import struct
import sys
import time

from grpc_peer import (ACK, DATA, END_HEADERS, GOAWAY, HEADERS, SETTINGS, WINDOW_UPDATE, Stream, enveloped, frame_of,
                       report)

STEP = 0.05
WIDE = 2 ** 31 - 1                      # a window that answers do not fill


def csci_id(n):
    return f'192.0.2.30:{1000 + n}'


def main():
    *where, cs_id, count, rate = sys.argv[1:]
    count, a_step = int(count), int(float(rate) * STEP)
    connection = Stream(*where)
    connection.frame(SETTINGS, 0, 0, struct.pack('!HI', 4, WIDE))
    connection.frame(WINDOW_UPDATE, 0, 0, struct.pack('!I', WIDE - 65535))
    for n in range(1, count):
        connection.frame(HEADERS, END_HEADERS, 1 + 2 * n, connection.headers)
    epoch, room, due = int(time.time() * 1000), 65535, time.monotonic()
    for first in itertools.count(step=a_step):
        frames = b''
        for n in range(first, first + a_step):
            message = report(csci_id(n % count), cs_id, epoch, 1 + n // count, 60 + n // count % 10)
            frames += frame_of(DATA, 0, 1 + 2 * (n % count), enveloped(message))
        while room < len(frames) or connection.socket.pending() or select.select([connection.socket], [], [], 0)[0]:
            for kind, flags, payload in connection.frames():
                if kind == WINDOW_UPDATE and connection.stream == 0:
                    room += struct.unpack('!I', payload)[0]
                elif kind == SETTINGS and not flags & ACK:
                    connection.frame(SETTINGS, ACK, 0, b'')
                elif kind == GOAWAY:
                    sys.exit('the C-SMA ended the connection')
        connection.socket.sendall(frames)
        room -= len(frames) - 9 * a_step
        due += STEP
        time.sleep(max(0, due - time.monotonic()))


if __name__ == '__main__':
    main()
