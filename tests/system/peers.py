# SPDX-License-Identifier: Apache-2.0
"""The real servers and watchers of the system tests: nginx and unbound in each instance's namespace, tcpdump beside
them, and what their logs and captures say."""
import collections
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import time

from net import SITE4

HTTP_PORT = 8080
HTTP_PORTS = (80, 8080, 8081)
SLOW_PORT = 8090
HERE = pathlib.Path(__file__).resolve().parent

NGINX = '''
worker_processes 1;
daemon off;
master_process off;
user root;
pid {folder}/{name}.pid;
error_log {folder}/{name}.error;
events {{ worker_connections 4096; }}
http {{
  log_format count '$remote_addr $remote_port $connections_active $status';
  access_log {log} count;
  keepalive_timeout 300s;
  keepalive_requests 1000000;
  client_body_temp_path {folder};
  server {{
    listen 80 backlog=4096;   listen [::]:80 backlog=4096;
    listen 8080 backlog=4096; listen [::]:8080 backlog=4096;
    listen 8081 backlog=4096; listen [::]:8081 backlog=4096;
    location /slow {{ root {folder}; limit_rate 256k; }}
    location = /metrics {{ root {folder}; }}
    location = /thinks {{ internal; proxy_pass http://127.0.0.1:{slow_port}; }}
    location / {{
      if (-f {folder}/{name}.slow) {{ rewrite ^ /thinks last; }}
      return 200 "{name}\\n";
    }}
  }}
}}
'''

UNBOUND = '''
server:
  directory: "{folder}"
  chroot: ""
  username: ""
  pidfile: "{folder}/{name}.unbound.pid"
  use-syslog: no
  logfile: "{folder}/{name}.unbound.log"
  do-daemonize: no
  num-threads: 1
  interface: 0.0.0.0
  interface: ::0
  interface-automatic: yes
  access-control: 0.0.0.0/0 allow
  access-control: ::0/0 allow
  local-zone: "example." static
  local-data: "who.example. TXT {name}"
  local-data: "www.example. A 203.0.113.1"
remote-control:
  control-enable: no
'''


class Instance:
    """One service instance: nginx on HTTP_PORTS (80 is for l2-dsr), unbound on port 53 when asked for."""

    def __init__(self, net, name, folder):
        self.net, self.name, self.folder = net, name, folder
        self.log = f'{folder}/{name}.access'
        self.read_to = 0
        config = f'{folder}/{name}.nginx.conf'
        with open(config, 'w') as f:
            f.write(NGINX.format(folder=folder, name=name, log=self.log, slow_port=SLOW_PORT))
        self.nginx = net.start(name, 'nginx', '-c', config, '-e', f'{folder}/{name}.error')
        self.unbound = None
        self.await_listening(self.nginx, 'tcp', HTTP_PORT)

    def slow_down(self, seconds):
        """From now on it thinks for so long before it answers."""
        slow = self.net.start(self.name, sys.executable, HERE / 'slow_server.py', SLOW_PORT, seconds, self.name)
        self.await_listening(slow, 'tcp', SLOW_PORT)
        pathlib.Path(f'{self.folder}/{self.name}.slow').touch()

    def speed_up(self):
        os.unlink(f'{self.folder}/{self.name}.slow')

    def start_dns(self):
        config = f'{self.folder}/{self.name}.unbound.conf'
        with open(config, 'w') as f:
            f.write(UNBOUND.format(folder=self.folder, name=self.name))
        self.unbound = self.net.start(self.name, 'unbound', '-c', config)
        self.await_listening(self.unbound, 'udp', 53)

    def await_listening(self, process, kind, port):
        """The process has entered its namespace, and there is a socket there: by /proc, for to ask in the namespace is
        a process each time."""
        namespace = os.stat(f'/run/netns/{self.net.prefix}{self.name}').st_ino
        state = {'tcp': '0A', 'udp': '07'}[kind]
        for _ in range(500):
            if os.stat(f'/proc/{process.pid}/ns/net').st_ino == namespace:
                rows = [row for table in (kind, kind + '6')
                        for row in pathlib.Path(f'/proc/{process.pid}/net/{table}').read_text().splitlines()[1:]]
                if any(row.split()[1].endswith(f':{port:04X}') and row.split()[3] == state for row in rows):
                    return
            time.sleep(0.01)
        raise RuntimeError(f'{self.name}: nothing listens on port {port}')

    def requests(self):
        """Requests answered since the last call: (how many, the most connections that nginx itself counted open)."""
        with open(self.log) as f:
            f.seek(self.read_to)
            lines = f.read().splitlines()
            self.read_to = f.tell()
        return len(lines), max((int(line.split()[2]) for line in lines), default=0)

    def counted_open(self):
        """Connections that nginx counts open now: also those whose end it has not seen to yet. What requests() would
        have told of before is forgotten."""
        self.requests()
        self.net.run(self.name, 'curl', '-s', f'http://127.0.0.1:{HTTP_PORT}/')
        return self.requests()[1] - 1

    def established(self):
        """Open connections of clients to nginx at HTTP_PORT, by the instance's kernel; the site's are its probes."""
        return len(self.net.run(self.name, 'ss', '-Htn', 'state', 'established',
                                f'sport = :{HTTP_PORT} and not dst {SITE4}').stdout.splitlines())


class Capture:
    """tcpdump on one interface. stop() gives its packets; packets that tcpdump missed are an error. `for_replay`: only
    what arrives, whole, and the file stays."""

    def __init__(self, net, namespace, expression='tcp', interface='eth0', folder='.', for_replay=False):
        self.net, self.file, self.stays = net, f'{folder}/{namespace}.{time.monotonic_ns()}.pcap', for_replay
        what = ['-Q', 'in', '-s', '0'] if for_replay else ['-s', '120']
        self.process = net.start(namespace, 'tcpdump', '-i', interface, '-w', self.file, '-Z', 'root', *what,
                                 '-U', '-B', '32768', '--immediate-mode', expression, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if 'listening on' in line:
                self.before = min(self._missing() for _ in range(3))
                return
        raise RuntimeError(f'tcpdump in {namespace} did not start')

    def _counts(self):
        """What tcpdump says of itself: packets captured, received, dropped. It may be behind the kernel."""
        self.process.send_signal(signal.SIGUSR1)
        line = next(line for line in self.process.stderr if 'captured' in line)
        return tuple(map(int, re.findall(r'(\d+) packet', line)))

    def _missing(self):
        """Packets received and not captured: on their way, or come before the kernel had the filter."""
        captured, received, _ = self._counts()
        return received - captured

    def stop(self):
        time.sleep(0.2)  # what is on its way to the interface
        for _ in range(200):
            captured, received, dropped = self._counts()
            if received - captured <= self.before:
                break
            time.sleep(0.05)
        self.net.stop(self.process)
        self.process.stderr.close()
        if dropped or received - captured > self.before:
            raise RuntimeError(f'tcpdump saw {captured} of {received - self.before} packets, and the kernel dropped '
                               f'{dropped}')
        with open(self.file, 'rb') as f:
            packets = list(parse_pcap(f.read()))
        if not self.stays:
            os.unlink(self.file)
        return packets


Packet = collections.namedtuple(
    'Packet', 'time source source_port destination destination_port protocol flags sequence')
FIN, SYN, RST, ACK = 1, 2, 4, 16


def parse_pcap(data):
    """Unfragmented TCP and UDP packets of a capture of Ethernet frames; others are left out."""
    order = '<' if data[:4] == b'\xd4\xc3\xb2\xa1' else '>'
    at = 24
    while at + 16 <= len(data):
        seconds, micro, length, _ = struct.unpack_from(order + 'IIII', data, at)
        packet = parse_frame(seconds + micro / 1e6, data[at + 16:at + 16 + length])
        if packet:
            yield packet
        at += 16 + length


def parse_frame(when, frame):
    kind = frame[12:14]
    if kind == b'\x08\x00':
        family, protocol, source, destination, l4 = (socket.AF_INET, frame[23], frame[26:30], frame[30:34],
                                                     14 + (frame[14] & 15) * 4)
    elif kind == b'\x86\xdd':
        family, protocol, source, destination, l4 = socket.AF_INET6, frame[20], frame[22:38], frame[38:54], 54
    else:
        return None
    if protocol not in (6, 17):
        return None
    source_port, destination_port, sequence = struct.unpack_from('!HHI', frame, l4)
    return Packet(when, socket.inet_ntop(family, source), source_port, socket.inet_ntop(family, destination),
                  destination_port, protocol, frame[l4 + 13] if protocol == 6 else 0, sequence)


def connections(captures):
    """The connections to HTTP_PORTS in captures by name: for each (client, client port, initial sequence number) the
    names of all captures that hold a packet of it. A packet belongs to the connection that its client port began
    last, so that ports may be used again and again."""
    found = collections.defaultdict(set)
    current = {}
    for packet, name in sorted((p, name) for name, packets in captures.items() for p in packets):
        client, sent_by_client = client_of(packet)
        if sent_by_client and packet.flags & (SYN | ACK) == SYN:
            current[client] = packet.sequence
        if client in current:
            found[(*client, current[client])].add(name)
    return found


def client_of(packet):
    """(its client's address and port, whether the client sent it)"""
    if packet.destination_port in HTTP_PORTS:
        return (packet.source, packet.source_port), True
    return (packet.destination, packet.destination_port), False


def most_open_at_once(packets):
    """The largest number of connections that were open at the instance at one time: from its SYN-ACK until FINs have
    gone both ways, or a RST."""
    state = {}
    most = 0
    for p in packets:
        key, from_client = client_of(p)
        if p.flags & SYN and not from_client:
            state[key] = set()
        elif p.flags & RST:
            state.pop(key, None)
        elif p.flags & FIN and key in state:
            state[key].add(from_client)
            if len(state[key]) == 2:
                del state[key]
        most = max(most, len(state))
    return most
