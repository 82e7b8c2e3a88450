# SPDX-License-Identifier: Apache-2.0
"""Downloads one file over a connection of its own and prints what came of it as JSON.

    download.py ADDRESS PORT PATH"""
import hashlib
import json
import socket
import sys


def main():
    address, port, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    result = {'bytes': 0, 'error': None}
    digest = hashlib.sha256()
    try:
        with socket.create_connection((address, port), timeout=60) as s, s.makefile('rb') as replies:
            s.sendall(f'GET {path} HTTP/1.1\r\nHost: service\r\nConnection: close\r\n\r\n'.encode())
            while replies.readline() not in (b'\r\n', b''):
                pass
            while data := replies.read1(65536):
                digest.update(data)
                result['bytes'] += len(data)
    except OSError as e:
        result['error'] = str(e)
    print(json.dumps({**result, 'sha256': digest.hexdigest()}))


if __name__ == '__main__':
    main()
