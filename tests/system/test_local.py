# SPDX-License-Identifier: Apache-2.0
"""What the SCI answers itself, whom it lets in, and the kernel's share of a port."""
import subprocess
import sys
import time

import net
from case import SystemCase, await_true
from site_file import Sci

NAT4, NAT6 = Sci(), Sci(address=net.SCI6)


class LocalCase(SystemCase):
    def pings(self, namespace, address, count=2):
        done = self.net.run(namespace, 'ping', '-n', '-c', count, '-i', '0.2', '-W', 1, address, check=False)
        return f' {count} received' in done.stdout


class Answers(LocalCase):
    scis = (NAT4, NAT6)

    def neighbour(self, namespace, address):
        words = self.net.run(namespace, 'ip', 'neigh', 'show', address).stdout.split()
        return words[words.index('lladdr') + 1] if 'lladdr' in words else None

    def test_arp_nd_and_echo(self):
        for namespace, address, mac in (('forwarder', net.OWN4, net.PORT_MACS[0]),
                                        ('forwarder', net.SCI4, net.PORT_MACS[0]),
                                        ('forwarder', net.OWN6, net.PORT_MACS[0]),
                                        ('forwarder', net.SCI6, net.PORT_MACS[0]),
                                        ('si-1', net.SITE4, net.PORT_MACS[1]),
                                        ('si-1', net.SITE6, net.PORT_MACS[1])):
            with self.subTest(address=address):
                self.net.run(namespace, 'ip', 'neigh', 'flush', 'all')
                self.assertTrue(self.pings(namespace, address))
                self.assertEqual(self.neighbour(namespace, address), mac)

    def test_echo_through_the_forwarder(self):
        for address in (net.SCI4, net.SCI6):
            with self.subTest(address=address):
                self.assertTrue(self.pings('client', address))

    def test_no_answer_for_others(self):
        for address in ('192.0.2.77', '2001:db8::77'):
            with self.subTest(address=address):
                self.assertFalse(self.pings('forwarder', address, 1))
                self.assertIsNone(self.neighbour('forwarder', address))

    def test_other_port_is_no_service(self):
        dropped = self.dropped('no_such_service')
        result = self.load(Sci(port=81), '--total', 3, '--timeout', 1)
        self.assertEqual(result['ok'], 0)
        self.assertGreaterEqual(self.dropped('no_such_service'), dropped + 3)


class Announcements(SystemCase):
    scis = (NAT4, NAT6)

    @classmethod
    def prepare(cls):
        cls.log = f'{cls.folder}/tcpdump'
        with open(cls.log, 'w') as log:
            cls.tcpdump = cls.net.start('forwarder', 'tcpdump', '-lni', 'sci', '-Z', 'root', 'arp or icmp6',
                                        stdout=log, stderr=subprocess.DEVNULL)
        time.sleep(0.5)

    def told(self, *texts):
        with open(self.log) as f:
            return any(text in line for line in f for text in texts)

    def test_addresses_are_announced_at_start(self):
        for address in (net.OWN4, net.SCI4):
            with self.subTest(address=address):
                await_true(f'{address} announced', lambda: self.told(f'Announcement {address}',
                                                                     f'who-has {address} tell {address}'))
        for address in (net.OWN6, net.SCI6):
            with self.subTest(address=address):
                await_true(f'{address} announced', lambda: self.told(
                    f'> ff02::1: ICMP6, neighbor advertisement, tgt is {address},'))


class Admission(SystemCase):
    scis = (NAT4,)

    def test_only_listed_forwarders_inject(self):
        self.net.ip('forwarder', 'link', 'set', 'sci', 'address', '02:00:00:00:00:99')
        dropped = self.dropped('unauthorised_forwarder')
        result = self.load(NAT4, '--total', 5, '--timeout', 1)
        self.assertEqual(result['failures'], {'timeout': 5})
        self.assertGreaterEqual(self.dropped('unauthorised_forwarder'), dropped + 5)
        self.assertEqual(self.active(NAT4), 0)
        self.net.ip('forwarder', 'link', 'set', 'sci', 'address', net.FORWARDER_MAC)
        self.net.run('forwarder', 'ip', 'neigh', 'flush', 'all')
        await_true('served again', lambda: self.load(NAT4, '--total', 1, '--timeout', 1)['ok'] == 1)

    def test_instances_are_no_forwarders(self):
        """A client among the instances, on the other port."""
        load = self.start_load(NAT4, '--total', 2, '--timeout', 1, namespace='si-3')
        self.assertEqual(self.result(load)['failures'], {'timeout': 2})
        self.assertEqual(self.active(NAT4), 0)


class Kernel(LocalCase):
    """The exception path of a port, both ways, with the port in the data plane's hands."""
    scis = (NAT4,)
    site = {'extra1': ('kernel: mg1',)}

    def test_kernel_pings_an_instance(self):
        for address in (net.instance4(1), net.instance6(1)):
            with self.subTest(address=address):
                self.assertTrue(self.pings('sci', address))

    # A server in the kernel's hands, on the port's own addresses.
    SERVER = '''
import socket
with socket.create_server(("::", 9000), family=socket.AF_INET6, dualstack_ipv6=True) as server:
    print("ready", flush=True)
    while True:
        connection, _ = server.accept()
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\nkernel\\n")
        connection.close()
'''

    def test_instance_connects_to_the_kernel(self):
        server = self.net.start('sci', sys.executable, '-c', self.SERVER, stdout=subprocess.PIPE)
        self.addCleanup(server.stdout.close)
        self.addCleanup(self.net.stop, server)
        server.stdout.readline()
        for address in (net.SITE4, net.SITE6):
            with self.subTest(address=address):
                load = self.start_load(Sci(address=address, port=9000), '--total', 20, '--at-once', 5, namespace='si-1')
                self.assertEqual(self.result(load)['instances'], {'kernel': 20})

    def test_kernel_connects_to_an_instance(self):
        for address in (net.instance4(2), net.instance6(2)):
            with self.subTest(address=address):
                load = self.start_load(Sci(address=address, port=8080), '--total', 20, '--at-once', 5, namespace='sci')
                self.assert_served(self.result(load), 20)

    def test_services_go_on_beside_it(self):
        self.assert_served(self.load(NAT4, '--total', 200), 200)
