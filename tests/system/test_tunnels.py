# SPDX-License-Identifier: Apache-2.0
"""ipip and gue with the Linux stack at both ends: instances hold the service's addresses, take the outer headers off
and answer round the SCI (SCI-73, SCI-124, SCI-126)."""
import json
import pathlib
import re
import subprocess
import sys

import net
from case import DsrCase
from peers import Capture
from site_file import Sci

HERE = pathlib.Path(__file__).resolve().parent
WEB, DNS, UPLOAD = 80, 53, 81
FAMILIES = (net.SCI4, net.SCI6)


def scis(mode, *extra, crossed=False):
    """Web, DNS and uploads, IPv4 and IPv6. `crossed`: the instances are of the other family."""
    return tuple(Sci(address=address, port=port, protocol='udp' if port == DNS else 'tcp', mode=mode,
                     instance_port=port, affinity='2s' if port == DNS else '30s', extra=extra, crossed=crossed)
                 for address in FAMILIES for port in (WEB, DNS, UPLOAD))


class TunnelCase(DsrCase):
    gue_port = 6080

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.ends = {}
        for name, server in zip(cls.net.instances, cls.servers):
            server.start_dns()
            cls.ends[name] = cls.net.start(name, sys.executable, HERE / 'decapsulate.py', cls.gue_port,
                                           stdout=subprocess.PIPE, text=True)
            upload = cls.net.start(name, sys.executable, HERE / 'transfer.py', 'serve', UPLOAD)
            server.await_listening(upload, 'tcp', UPLOAD)
        for end in cls.ends.values():
            if end.stdout.readline() != 'ready\n':
                raise RuntimeError('decapsulate.py did not start')

    def sci(self, address, port):
        return next(sci for sci in self.scis if (sci.address, sci.port) == (address, port))

    def too_big(self, sci):
        told = self.dataplane.show('sci')['refused']
        return sum(row['refused'] for row in told if (row['csci_id'], row['cause']) == (sci.csci_id, 'too_big'))

    def connections(self, address):
        sci = self.sci(address, WEB)
        result = self.load(sci, '--total', 1000)
        self.assert_served(result, 1000)
        for name in self.net.instances:
            self.assertAlmostEqual(result['instances'].get(name, 0), 1000 / 3, delta=50)
        self.await_no_slots(sci)

    def queries(self, address):
        sci = self.sci(address, DNS)
        with open(f'{self.folder}/queries', 'w') as f:
            f.write('www.example A\nwho.example TXT\n')
        out = self.net.run('client', 'dnsperf', '-s', address, '-d', f.name, '-n', 500, '-c', 30).stdout
        self.assertRegex(out, r'Queries lost: +0 ')
        self.assertEqual(re.search(r'NOERROR (\d+)', out).group(1), '1000')
        self.await_no_slots(sci)

    def upload(self, address, size=10_000_000):
        """Segments as long as the client's own link allows do not fit: it is told, and sends shorter ones."""
        sci = self.sci(address, UPLOAD)
        before = self.too_big(sci)
        sent = self.net.run('client', sys.executable, HERE / 'transfer.py', 'send', address, UPLOAD, size)
        self.assertTrue(json.loads(sent.stdout)['right'], sent.stdout)
        self.assertGreater(self.too_big(sci), before)
        self.await_no_slots(sci)
        self.forget_path_mtu()

    def path_mtu(self, address):
        """What the client's kernel learns of the path by datagrams as long as its own link allows."""
        size = 1500 - (40 if ':' in address else 20) - 8
        told = self.net.run('client', sys.executable, HERE / 'transfer.py', 'datagrams', address, DNS, size)
        self.forget_path_mtu()
        return int(told.stdout)

    def forget_path_mtu(self):
        self.net.ip('client', 'route', 'flush', 'cache')
        self.net.ip('client', '-6', 'route', 'flush', 'cache')


class Every:
    """What each mode has to carry; `mtu`: what is left of 1500, by the client's family."""
    mtu = {}

    def test_ipv4_connections(self):
        self.connections(net.SCI4)

    def test_ipv6_connections(self):
        self.connections(net.SCI6)

    def test_ipv4_datagrams(self):
        self.queries(net.SCI4)

    def test_ipv6_datagrams(self):
        self.queries(net.SCI6)

    def test_ipv4_upload(self):
        self.upload(net.SCI4)

    def test_ipv6_upload(self):
        self.upload(net.SCI6)

    def test_ipv4_path_mtu(self):
        self.assertEqual(self.path_mtu(net.SCI4), self.mtu[net.SCI4])

    def test_ipv6_path_mtu(self):
        self.assertEqual(self.path_mtu(net.SCI6), self.mtu[net.SCI6])


class Ipip(Every, TunnelCase):
    scis = scis('ipip')
    mtu = {net.SCI4: 1500 - 20, net.SCI6: 1500 - 40}


class IpipCrossed(Every, TunnelCase):
    scis = scis('ipip', crossed=True)
    mtu = {net.SCI4: 1500 - 40, net.SCI6: 1500 - 20}


class Gue(Every, TunnelCase):
    scis = scis('gue')
    mtu = {net.SCI4: 1500 - 32, net.SCI6: 1500 - 52}

    def test_flows_spread_over_source_ports(self):
        captures = [Capture(self.net, name, 'udp dst port 6080', folder=self.folder) for name in self.net.instances]
        self.assert_served(self.load(self.sci(net.SCI4, WEB), '--total', 300), 300)
        packets = [p for capture in captures for p in capture.stop()]
        self.assertEqual({p.source for p in packets}, {net.SITE4})
        ports = {p.source_port for p in packets}
        self.assertGreater(len(ports), 250)
        self.assertGreaterEqual(min(ports), 49152)
        self.await_no_slots(self.sci(net.SCI4, WEB))


class GueCrossed(Every, TunnelCase):
    gue_port = 5555
    scis = scis('gue', 'gue: {port: 5555, variant: 1, checksum: zero}', crossed=True)
    mtu = {net.SCI4: 1500 - 48, net.SCI6: 1500 - 28}


class SmallLink(TunnelCase):
    """The site's link takes less than the others; with MSS clamped instances send short segments, too."""
    scis = scis('ipip', 'mss_clamp: auto')
    site = {'extra1': ('mtu: 1400',)}

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.net.ip('sci', 'link', 'set', 'port1', 'mtu', '1400')
        cls.net.ip('site', 'link', 'set', 'sci', 'mtu', '1400')

    def test_uploads(self):
        for address in FAMILIES:
            self.upload(address)

    def test_path_mtu(self):
        self.assertEqual([self.path_mtu(a) for a in FAMILIES], [1400 - 20, 1400 - 40])

    def test_clients_see_nothing_of_the_site(self):
        capture = Capture(self.net, 'client', 'icmp or icmp6[icmp6type] = 2', folder=self.folder, for_replay=True)
        for address in FAMILIES:
            self.path_mtu(address)
        capture.stop()
        data = pathlib.Path(capture.file).read_bytes()
        inner = [bytes([10, 1, 0]), bytes.fromhex('20010db80001')]
        self.assertGreater(len(data), 1000)
        self.assertEqual([i for i in inner if i in data], [])


class Told(TunnelCase):
    """What arrives at the ends is from the SCI's own address on the site's network, and nothing else."""
    scis = scis('gue')

    def test_outer_headers(self):
        for address in FAMILIES:
            self.assert_served(self.load(self.sci(address, WEB), '--total', 60), 60)
        for end in self.ends.values():
            self.net.stop(end)
            told = json.loads(end.stdout.read())
            self.assertEqual(told['sources'], [net.SITE4, net.SITE6])
            self.assertEqual(told['unknown'], [])
            self.assertGreater(min(told['inner'].values()), 60)
