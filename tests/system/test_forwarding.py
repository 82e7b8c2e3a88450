# SPDX-License-Identifier: Apache-2.0
"""Real connections through the data plane: modes, families, ways to balance, ports used again. HTTP over TCP and DNS
over UDP between programs that know nothing of CATS (SCI-126, SCI-129)."""
import pathlib
import re
import time

import net
from case import DsrCase, SystemCase, await_true
from peers import Capture, connections
from site_file import Sci

NAT4, NAT6 = Sci(), Sci(address=net.SCI6)


class ForwardingCase(SystemCase):
    """One way of forwarding, IPv4 and IPv6."""

    def check(self, sci, count=600, share=0.1):
        captures = {name: Capture(self.net, name, folder=self.folder) for name in self.net.instances}
        result = self.load(sci, '--total', count)
        packets = {name: capture.stop() for name, capture in captures.items()}
        self.assert_served(result, count)
        seen = connections(packets)
        self.assertEqual(len(seen), count)
        self.assertEqual([c for c, names in seen.items() if len(names) != 1], [])
        for name in self.net.instances:
            self.assertAlmostEqual(result['instances'].get(name, 0), count / 3, delta=share * count / 3)
        self.await_no_slots(sci)
        return packets


class Nat(ForwardingCase):
    scis = (NAT4, NAT6)

    def test_ipv4(self):
        self.check(NAT4)

    def test_ipv6(self):
        self.check(NAT6)

    def test_replies_are_handed_over_between_workers(self):
        before = self.handed_over()
        self.load(NAT4, '--total', 100)
        self.assertGreater(self.handed_over(), before)

    def handed_over(self):
        return sum(row['replies_handed_over'] for row in self.dataplane.show('workers')['workers'])

    def test_client_sees_the_service_address_only(self):
        capture = Capture(self.net, 'client', folder=self.folder)
        self.assert_served(self.load(NAT4, '--total', 50), 50)
        addresses = {a for p in capture.stop() for a in (p.source, p.destination)}
        self.assertEqual(addresses, {net.CLIENT4, net.SCI4})


class Dsr(DsrCase, ForwardingCase):
    scis = (Sci(mode='l2-dsr', instance_port=80), Sci(address=net.SCI6, mode='l2-dsr', instance_port=80))

    def test_ipv4(self):
        self.check(self.scis[0])

    def test_ipv6(self):
        self.check(self.scis[1])

    def test_replies_go_round_the_sci(self):
        capture = Capture(self.net, 'site', interface='sci', folder=self.folder)
        self.assert_served(self.load(self.scis[0], '--total', 50), 50)
        self.assertEqual({p.source for p in capture.stop()}, {net.CLIENT4})


class Balance(ForwardingCase):
    scis = (Sci(balance='least-connections'), Sci(address=net.SCI6, balance='slot-based'))

    def test_least_connections(self):
        self.check(self.scis[0], share=0.2)

    def test_slot_based(self):
        self.check(self.scis[1], share=0.2)


class SlotBasedLimits(SystemCase):
    """SCI-77: slot-based takes the instance with the most free slots."""
    scis = (Sci(balance='slot-based', limits=(30, 20, 10)),)

    def test_free_slots_are_kept_equal(self):
        held = self.start_load(self.scis[0], '--hold', 30, '--at-once', 1)
        self.assert_served(self.result(held), 30)
        self.assertEqual([s.established() for s in self.servers], [20, 10, 0])


class PortReuse(SystemCase):
    scis = (NAT4,)

    def test_ports_used_again_within_time_wait(self):
        self.net.run('client', 'sysctl', '-q', '-w', 'net.ipv4.ip_local_port_range=40000 40199')
        captures = {name: Capture(self.net, name, folder=self.folder) for name in self.net.instances}
        result = self.load(NAT4, '--total', 4000)
        seen = connections({name: capture.stop() for name, capture in captures.items()})
        self.assert_served(result, 4000)
        self.assertEqual([c for c, names in seen.items() if len(names) != 1], [])
        self.assertLessEqual(len({port for _, port, _ in seen}), 200)
        self.assertGreaterEqual(sum(row['opened'] for row in self.slots_of(NAT4).values()), 4000)
        self.await_no_slots(NAT4)


class Dns(SystemCase):
    scis = (Sci(port=53, protocol='udp', instance_port=53, affinity='2s'),
            Sci(address=net.SCI6, port=53, protocol='udp', instance_port=53, affinity='2s'))
    dns = True

    def check(self, sci):
        with open(f'{self.folder}/queries', 'w') as f:
            f.write('www.example A\nwho.example TXT\n')
        out = self.net.run('client', 'dnsperf', '-s', sci.address, '-d', f.name, '-n', 1000, '-c', 30).stdout
        self.assertRegex(out, r'Queries lost: +0 ')
        self.assertEqual(re.search(r'NOERROR (\d+)', out).group(1), '2000')
        self.await_no_slots(sci)

    def test_ipv4(self):
        self.check(self.scis[0])

    def test_ipv6(self):
        self.check(self.scis[1])


class RestCase(SystemCase):
    def resting(self):
        """How many threads gave their cores up again and again of their own will within half a second."""
        before = self.rests()
        time.sleep(0.5)
        return sum(1 for task, count in self.rests().items() if count > before.get(task, 0) + 50)

    def rests(self):
        """By thread of the data plane: how often it has waited."""
        found = {}
        for status in pathlib.Path(f'/proc/{self.dataplane.process.pid}/task').glob('*/status'):
            line = next(l for l in status.read_text().splitlines() if l.startswith('voluntary_ctxt_switches'))
            found[status.parent.name] = int(line.split()[1])
        return found


class Spin(RestCase):
    """idle: spin, one worker, which the client, the instances and the control thread leave a core to."""
    scis = (NAT4,)
    site = {'idle': 'spin', 'workers': 1}

    def test_served_and_never_asleep(self):
        self.assertEqual(self.resting(), 0)
        self.assert_served(self.load(NAT4, '--total', 1000), 1000)
        self.assertEqual(self.resting(), 0)
        self.await_no_slots(NAT4)


class Idle(RestCase):
    """idle: sleep loses nothing at the next burst."""
    scis = (Sci(port=9, protocol='udp', instance_port=9, affinity='20s'),)

    BURST = '''
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("192.0.2.10", 9))
for i in range(%d): s.send(b"x")
'''

    def test_burst_after_a_pause_arrives_whole(self):
        captures = {name: Capture(self.net, name, 'udp port 9', folder=self.folder) for name in self.net.instances}
        self.net.run('client', 'python3', '-c', self.BURST % 1)   # next hops known
        for _ in range(5):
            await_true('the workers sleep', lambda: self.resting() >= 2)
            self.net.run('client', 'python3', '-c', self.BURST % 400)
        received = sum(len([p for p in c.stop() if p.destination_port == 9]) for c in captures.values())
        self.assertEqual(received, 1 + 5 * 400)
