# SPDX-License-Identifier: Apache-2.0
"""Ports over interfaces of the kernel that go down, come up again, and go away."""
from case import SystemCase, await_true
from site_file import Sci

NAT4 = Sci(affinity='4s')


class LinkCase(SystemCase):
    scis = (NAT4,)

    def link(self, port):
        return self.dataplane.show('port', 'info', port)['ports'][0]['link']

    def await_link(self, port, state):
        await_true(f'{port} is {state}', lambda: self.link(port) == state)

    def told(self, port, what):
        """Lines of the log that say so of the port."""
        return [line for line in self.dataplane.log_text().splitlines()
                if f'msg="{what}" port={port} ' in line]

    def assert_lost_by_name(self):
        """What is not sent any more is counted for what it is."""
        before = self.dropped('link_down')
        self.load(NAT4, '--total', 5, '--timeout', 1)
        await_true('drops are named', lambda: self.dropped('link_down') > before)


class Links(LinkCase):
    def take_down(self, port, namespace, interface):
        self.addCleanup(self.net.ip, namespace, 'link', 'set', interface, 'up')
        self.net.ip(namespace, 'link', 'set', interface, 'down')
        self.await_link(port, 'down')
        self.assertEqual(len(self.told(port, 'link down')), 1)
        return lambda: self.net.ip(namespace, 'link', 'set', interface, 'up')

    def go_on(self, port):
        self.await_link(port, 'up')
        self.assertEqual(len(self.told(port, 'link up')), 1)
        await_true('served again', lambda: self.load(NAT4, '--total', 1, '--timeout', 1)['ok'] == 1)
        self.assert_served(self.load(NAT4, '--total', 100), 100)

    def test_interface_down_and_up(self):
        up = self.take_down('net1', 'sci', 'port1')
        self.assert_lost_by_name()
        up()
        self.go_on('net1')

    def test_other_end_down_and_up(self):
        self.take_down('net0', 'forwarder', 'sci')()
        self.go_on('net0')


class Deleted(LinkCase):
    def test_interface_deleted_under_traffic(self):
        self.assert_served(self.load(NAT4, '--total', 20), 20)
        load = self.start_load(NAT4, '--seconds', 3, '--timeout', 1)
        await_true('load runs', lambda: self.active(NAT4) > 0)
        self.net.ip('sci', 'link', 'del', 'port1')
        self.await_link('net1', 'down')
        self.assertEqual(self.link('net0'), 'up')
        self.assert_lost_by_name()
        self.assertGreater(self.result(load)['failed'], 0)
        self.assertEqual(len(self.told('net1', 'link down')), 1)
        # Another interface of the same name is not the one that the port had.
        self.net.veth('sci', 'port1', 'site', 'sci')
        self.assert_lost_by_name()
        self.assertEqual(self.link('net1'), 'down')
        self.await_no_slots(NAT4)
        self.assertEqual(self.dataplane.stop(), 0)


class Moved(LinkCase):
    def test_interface_moved_away_and_back(self):
        """The driver's sockets do not come back with it (packet(7), ENETDOWN): it must not be shown as up."""
        self.assert_served(self.load(NAT4, '--total', 20), 20)
        self.net.ip('sci', 'link', 'set', 'port1', 'netns', self.net.prefix + 'client')
        self.await_link('net1', 'down')
        self.net.ip('client', 'link', 'set', 'port1', 'netns', self.net.prefix + 'sci')
        self.net.ip('sci', 'link', 'set', 'port1', 'up')
        self.net.hand_to_data_plane('port1')
        self.assert_lost_by_name()
        self.assertEqual(self.link('net1'), 'down')
        self.assertEqual(self.told('net1', 'link up'), [])
        self.assertEqual(self.dataplane.stop(), 0)
