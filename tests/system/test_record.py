# SPDX-License-Identifier: Apache-2.0
"""The table of a running data plane is recorded under traffic, and replayed with captures of the same time. Only one
instance serves at a time: which of several a flow gets depends on the worker that owns it, and so on a secret."""
import json
import os
import subprocess
import time

import site_file
from case import SystemCase, await_true
from dataplane import PROGRAM, CommandFailed, DataPlane
from peers import ACK, SYN, Capture
from site_file import Sci
from table_writer import Control

SCI = Sci(limits=(100, 100, 100), extra=('provisional: {share: 100%}',))
PORTS = {'net0': 'port0', 'net1': 'port1'}


class Record(SystemCase):
    @classmethod
    def prepare(cls):
        cls.small = f'{cls.folder}/small'
        os.mkdir(cls.small)
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=8k', 'none', cls.small], check=True)
        cls.addClassCleanup(subprocess.run, ['umount', cls.small], check=True)

    def setUp(self):
        self.control = f'{self.folder}/run/dataplane.sock'
        text = site_file.text(f'{self.folder}/cli.sock', (SCI,), control=self.control, flows=8192)
        self.dataplane = DataPlane(self.net, self.folder, text)
        self.addCleanup(self.dataplane.stop)
        self.table = f'{self.folder}/table.jsonl'

    def only(self, name):
        for instance in self.net.instances:
            self.commands.ask('health', instance, 'healthy' if instance == name else 'unhealthy')
        self.commands.commit()

    def incident(self):
        """One instance after the other, each way of losing one, and a limit that is reached."""
        self.assert_served(self.load(SCI, '--total', 20), 20)
        held = self.start_load(SCI, '--hold', 5)
        self.result(held)
        self.only('si-2')                                           # the five are reset
        self.assert_served(self.load(SCI, '--total', 20), 20)
        self.finish(held)
        self.await_no_slots(SCI)
        self.set(SCI, 'si-2', 'max-sessions', 3)
        held = self.start_load(SCI, '--hold', 3)
        self.result(held)
        self.assertEqual(self.load(SCI, '--total', 4)['failures'], {'ECONNREFUSED': 4})
        self.set(SCI, 'si-2', 'drain', '1s')
        self.assertEqual(self.load(SCI, '--total', 6)['failures'], {'ECONNREFUSED': 6})
        self.await_no_slots(SCI)                                    # after the deadline,
        time.sleep(0.5)                                             # and a walk over 4096 bindings: 16 ticks of 10 ms
        self.finish(held)
        self.dataplane.command('clear', 'instance', SCI.csci_id, 'si-2')
        self.dataplane.command('stop')
        self.dataplane.command('start')
        self.only('si-3')
        self.assert_served(self.load(SCI, '--total', 20), 20)
        self.await_no_slots(SCI)

    def replay(self, captures):
        done = subprocess.run([PROGRAM, 'replay', '--config', self.dataplane.site, '--table', self.table,
                               *(word for port, capture in captures.items() for word in
                                 ('--in', f'{port}={capture.file}')),
                               '--assume-neighbours', '--out', f'{self.folder}/replay'], capture_output=True, text=True,
                              timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        with open(f'{self.folder}/replay/decisions.jsonl') as lines, open(f'{self.folder}/replay/counters.json') as f:
            return [json.loads(line) for line in lines], json.load(f)

    def test_a_replay_decides_as_the_data_plane_did(self):
        self.commands = Control(self)
        self.addCleanup(self.commands.end)
        self.only('si-1')
        captures = {port: Capture(self.net, 'sci', 'ip or arp', interface, self.folder, for_replay=True)
                    for port, interface in PORTS.items()}
        self.dataplane.command('record', 'table', self.table)
        self.incident()
        shown = self.dataplane.show('table')
        self.assertEqual((shown['recording'], shown['recording_ended']), (self.table, None))
        arrived = {port: capture.stop() for port, capture in captures.items()}
        told = json.loads(self.dataplane.command('record', 'table', 'off', '--json'))
        self.assertEqual(told, {'recorded': self.table, 'lines': 1 + 2 + 3 + 2})    # state, snapshots, settings, stop
        answered = {(p.destination_port, p.source) for p in arrived['net1'] if p.flags & (SYN | ACK) == SYN | ACK}
        refused = {row['cause']: row['refused'] for row in self.dataplane.show('sci')['refused']}
        slots = {row['si_id']: row['opened'] for row in self.dataplane.show('slots')['slots']}

        decisions, counters = self.replay(captures)
        address = {f'si-{n}': f'10.1.0.{10 + n}' for n in (1, 2, 3)}
        bound = {(line['parsed']['source_port'], address[line['instance']]) for line in decisions
                 if line.get('binding') == 'new' and 'instance' in line}
        self.assertEqual(len(bound), 20 + 5 + 20 + 3 + 20)
        self.assertEqual(bound, answered)
        self.assertEqual({cause: n for cause, n in counters['refused'][SCI.csci_id].items() if n}, refused)
        self.assertEqual({i['instance']: i['opened'] for i in counters['instances']}, slots)
        ended = {i['instance']: i['ended'] for i in counters['instances']}
        self.assertEqual((ended['si-1']['unhealthy'], ended['si-2']['drained']), (5, 3))

    def test_a_full_disk_ends_the_recording_and_nothing_else(self):
        self.commands = Control(self)
        self.addCleanup(self.commands.end)
        self.dataplane.command('record', 'table', f'{self.small}/t')
        for _ in range(20):
            self.only('si-1')
        await_true('the recording ended', lambda: self.dataplane.show('table')['recording_ended'])
        self.assert_served(self.load(SCI, '--total', 20), 20)
        told = [line for line in self.dataplane.log_text().splitlines() if 'recording of the table ended' in line]
        self.assertEqual(len(told), 1)
        self.assertIn(f'{self.small}/t: ', told[0])
        with self.assertRaisesRegex(CommandFailed, 'the recording had ended by itself'):
            self.dataplane.command('record', 'table', 'off')
