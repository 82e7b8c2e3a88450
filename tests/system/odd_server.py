# SPDX-License-Identifier: Apache-2.0
"""A server that is no good to anybody: prints a line for each connection.

    odd_server.py PORT close    closes it at once
    odd_server.py PORT mute     keeps it, reads nothing and says nothing"""
import socket
import sys


def main():
    kept = []
    with socket.create_server(('', int(sys.argv[1]))) as server:
        while True:
            connection, _ = server.accept()
            print('connection', flush=True)
            if sys.argv[2] == 'close':
                connection.close()
            else:
                kept.append(connection)


if __name__ == '__main__':
    main()
