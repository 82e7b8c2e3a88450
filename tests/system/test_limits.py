# SPDX-License-Identifier: Apache-2.0
"""Slots, limits, drain and refusal under real connections."""
import sys
import time

from case import HERE, SystemCase, await_true
from peers import ACK, SYN, Capture, client_of, most_open_at_once
from site_file import Sci


class Limits(SystemCase):
    scis = (Sci(limits=(10, 10, 1000)),)
    SCI = scis[0]

    def tearDown(self):
        for name, limit in zip(self.net.instances, self.SCI.limits):
            self.set(self.SCI, name, 'enable')
            self.set(self.SCI, name, 'max-sessions', limit)
        self.await_no_slots(self.SCI)

    def test_never_more_than_the_limit(self):
        captures = {name: Capture(self.net, name, folder=self.folder) for name in ('si-1', 'si-2')}
        for server in self.servers:
            server.requests()
        result = self.load(self.SCI, '--total', 3000, '--at-once', 100)
        self.assert_served(result, 3000)
        for server in self.servers[:2]:
            packets = captures[server.name].stop()
            count, most = server.requests()
            self.assertGreater(count, 100)
            self.assertLessEqual(most, 10)
            self.assertLessEqual(most_open_at_once(packets), 10)

    def test_limit_is_reached_exactly(self):
        self.set(self.SCI, 'si-3', 'max-sessions', 10)
        held = self.start_load(self.SCI, '--hold', 30, '--at-once', 1)
        self.assert_served(self.result(held), 30)
        self.assertEqual([server.established() for server in self.servers], [10, 10, 10])
        self.assertEqual(self.active(self.SCI), 30)
        refused = self.load(self.SCI, '--total', 50, '--at-once', 5)
        self.assertEqual(refused['failures'], {'ECONNREFUSED': 50})
        self.assertLess(refused['slowest'], 1)
        self.finish(held)
        self.await_no_slots(self.SCI)
        self.assert_served(self.load(self.SCI, '--total', 50, '--at-once', 5), 50)

    def test_limit_lowered_below_what_is_open(self):
        held = self.start_load(self.SCI, '--hold', 12, '--at-once', 1)
        self.assert_served(self.result(held), 12)
        before = self.servers[0].established()
        self.assertGreaterEqual(before, 3)                        # two workers, each in turn
        self.set(self.SCI, 'si-1', 'max-sessions', 1)
        self.assertEqual(self.servers[0].established(), before)   # nobody is thrown out
        captures = Capture(self.net, 'si-1', folder=self.folder)
        self.assert_served(self.load(self.SCI, '--total', 100), 100)
        self.assertEqual(new_connections(captures.stop()), 0)
        self.finish(held)

    def test_drain_under_load(self):
        load = self.start_load(self.SCI, '--seconds', 2)
        time.sleep(0.5)
        self.set(self.SCI, 'si-1', 'max-sessions', 500)
        self.set(self.SCI, 'si-3', 'drain')
        time.sleep(0.2)
        capture = Capture(self.net, 'si-3', folder=self.folder)
        result = self.result(load)
        self.assertEqual(result['failures'], {})
        self.assertEqual(new_connections(capture.stop()), 0)

    def test_drain_leaves_open_connections_until_its_deadline(self):
        held = self.start_load(self.SCI, '--hold', 6, '--at-once', 1)
        self.assert_served(self.result(held), 6)
        before = self.slots_of(self.SCI)['si-1']['active']
        self.assertGreaterEqual(before, 1)                        # two workers, each in turn
        self.set(self.SCI, 'si-1', 'drain', '3s')
        time.sleep(1)
        self.assertEqual(self.slots_of(self.SCI)['si-1']['active'], before)
        await_true('slot given back at the deadline', lambda: self.slots_of(self.SCI)['si-1']['active'] == 0, 6)
        self.finish(held)

    def test_weight_0_takes_nothing_new(self):
        self.set(self.SCI, 'si-3', 'weight', 0)
        capture = Capture(self.net, 'si-3', folder=self.folder)
        self.assert_served(self.load(self.SCI, '--total', 100, '--at-once', 10), 100)
        self.assertEqual(new_connections(capture.stop()), 0)
        self.set(self.SCI, 'si-3', 'weight', 1)

    def test_syn_that_nobody_follows_up(self):
        """D-45: it holds a slot until the embryonic timer, no longer."""
        self.net.run('client', sys.executable, HERE / 'syn.py', '203.0.113.77', self.SCI.address, 80, 3)
        self.assertEqual(self.active(self.SCI), 3)
        self.await_no_slots(self.SCI, 6)


def new_connections(packets):
    return sum(1 for p in packets if client_of(p)[1] and p.flags & (SYN | ACK) == SYN)
