# SPDX-License-Identifier: Apache-2.0
"""The shared table of a running data plane: a control plane that does right, is killed, and does everything wrong."""
import signal

import site_file
from case import SystemCase, await_true
from dataplane import DataPlane
from peers import RST, Capture, client_of
from site_file import Sci
from table_writer import Control

SCI = Sci()


class Table(SystemCase):
    def setUp(self):
        self.control = f'{self.folder}/run/dataplane.sock'      # its folder is the data plane's to make
        text = site_file.text(f'{self.folder}/cli.sock', (SCI,), control=self.control)
        self.dataplane = DataPlane(self.net, self.folder, text)
        self.addCleanup(self.dataplane.stop)

    def start_control(self):
        control = Control(self)
        self.addCleanup(control.end)
        return control

    def table(self):
        return self.dataplane.show('table')

    def health(self):
        return {row['si_id']: row['health'] for row in self.table()['instances']}

    def refused(self):
        return {row['cause']: row['refused'] for row in self.dataplane.show('sci')['refused']}

    def test_nothing_is_admitted_before_the_first_snapshot(self):
        self.assertEqual(self.load(SCI, '--total', 5)['failures'], {'ECONNREFUSED': 5})
        self.assertEqual(self.refused(), {'no_snapshot': 5})
        table = self.table()
        self.assertEqual((table['connected'], table['fail_static'], table['generation']), (False, False, 0))
        self.assertEqual({(row['health'], row['limit']) for row in table['instances']}, {('UNKNOWN', 0)})
        control = self.start_control()
        self.assertEqual(control.ask('running'), {'generation': 0, 'health': {}})
        control.commit()
        self.assert_served(self.load(SCI, '--total', 50), 50)
        table = self.table()
        self.assertEqual((table['connected'], table['pid'], table['generation'], table['acked']),
                         (True, control.process.pid, 1, 1))
        self.assertEqual({(row['health'], row['limit']) for row in table['instances']}, {('HEALTHY', 1000)})
        self.assertLess(max(row['health_seconds'] for row in table['instances']), 60)

    def test_no_client_packet_to_an_unhealthy_instance_after_the_ack(self):
        control = self.start_control()
        control.commit()
        load = self.start_load(SCI, '--seconds', 4)
        await_true('si-3 has its share', lambda: self.slots_of(SCI)['si-3']['opened'] > 50)
        control.ask('health', 'si-3', 'unhealthy')
        control.commit()
        capture = Capture(self.net, 'si-3', folder=self.folder)
        result = self.result(load)
        # What ends a session there is a reset of ours, no packet of a client's.
        packets = [p for p in capture.stop() if client_of(p)[1] and not p.flags & RST]
        self.assertEqual(packets, [])
        self.assertGreater(result['instances']['si-1'], 50)
        self.await_no_slots(SCI)
        self.assertEqual(self.dataplane.audit(), (True, 0))

    def test_killed_under_load_and_another_takes_over(self):
        first = self.start_control()
        first.ask('health', 'si-2', 'degraded')
        generation = first.commit()
        load = self.start_load(SCI, '--seconds', 4)
        first.end(signal.SIGKILL)
        await_true('the data plane sees that it went', lambda: not self.table()['connected'])
        table = self.table()
        self.assertEqual((table['fail_static'], table['pid'], table['generation']), (True, None, generation))
        text = self.dataplane.command('show', 'table')
        self.assertIn(f'fail-static: forwarding on by the table of generation {generation},', text)
        second = self.start_control()
        self.assertEqual(second.ask('running'), {'generation': generation, 'health': {
            'si-1': 'HEALTHY', 'si-2': 'DEGRADED', 'si-3': 'HEALTHY'}})
        second.ask('health', 'si-2', 'healthy')
        self.assertEqual(second.commit(), generation + 1)
        self.assertEqual(self.health()['si-2'], 'HEALTHY')
        self.assertEqual(self.result(load)['failures'], {})
        log = self.dataplane.log_text()
        self.assertIn(f'msg="control plane gone, forwarding on" pid={first.process.pid}', log)
        self.assertIn(f'msg="control plane connected" pid={second.process.pid} generation={generation}', log)

    def test_what_an_operator_sets_shows(self):
        self.start_control().commit()
        self.set(SCI, 'si-2', 'max-sessions', 7)
        self.set(SCI, 'si-2', 'disable')
        row = self.table()['instances'][1]
        self.assertEqual((row['set_admin'], row['set_max_sessions'], row['set_weight'], row['limit']),
                         ('disabled', 7, None, 7))

    def test_hostile_control_planes(self):
        """Each is refused with its reason, and the traffic does not notice."""
        control = self.start_control()
        control.commit()
        control.end()
        load = self.start_load(SCI, '--seconds', 12)
        name = SCI.csci_id
        closed = {
            'deaf': 'reads no answers',
            'half': 'sent a message of 100 bytes, expected 256',
            'message-version': 'sent protocol version 99, expected 1',
        }
        refused = {
            'buffer': 'buffer 7, expected 0 to 2',
            'length': 'length 16777217, expected at most 16777216',
            'checksum': 'checksum of buffer 0 is not the one that the commit names',
            'version': 'version: 99, expected 3',
            'long': 'length: 1 bytes too many',
            'other-generation': 'generation 2 in the snapshot, 3 in the commit',
            'old-generation': 'generation 1, expected above 1, which runs',
            'index': f'scis[{name}].instances[si-1]: index 65535, expected below 1024',
            'health': 'scis[0].instances[0].health: 9, expected 0 to 3',
            'limit': 'limit 1001, expected at most max_sessions 1000',
            'address': f'scis[{name}].instances[si-x].address:',
            'moved': "is si-1's in generation 1, expected a higher one for another instance",
            'short': 'ends',
        }
        others = {'truncate': 'sealed', 'edit': 'each taken or refused'}
        hostile = self.start_control()
        for deed, reason in {**refused, **closed}.items():
            with self.subTest(deed):
                answer = hostile.ask('hostile', deed)['answer']
                if deed in closed:
                    self.assertEqual(answer, 'closed')
                else:
                    self.assertIn(reason, answer)
                await_true(f'show table says {reason}', lambda: reason in self.table()['last_refusal'])
                self.assertEqual(self.table()['generation'], 1)
        with self.subTest('twice'):
            self.assertEqual(hostile.ask('hostile', 'twice')['answer'],
                             f'process {hostile.process.pid} is connected as control plane')
        for deed, outcome in others.items():
            with self.subTest(deed):
                self.assertEqual(hostile.ask('hostile', deed)['answer'], outcome)
        self.assertEqual(self.result(load)['failures'], {})
        self.assertLess(self.dataplane.log_text().count('snapshot refused'), 100)
        self.await_no_slots(SCI)
        self.assertEqual(self.dataplane.audit(), (True, 0))
