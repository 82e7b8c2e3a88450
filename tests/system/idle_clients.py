# SPDX-License-Identifier: Apache-2.0
"""Opens so many connections, prints how many are open, says nothing on them and stays.
   idle_clients.py ADDRESS PORT N"""
import resource
import signal
import socket
import sys


def main():
    count = int(sys.argv[3])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, count + 100), most))
    kept = [socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=30) for _ in range(count)]
    print(len(kept), flush=True)
    signal.pause()


if __name__ == '__main__':
    main()
