# SPDX-License-Identifier: Apache-2.0
"""margay-control against data planes that do everything wrong (tests/support/hostile_data_plane.cc), one after the
other, and then against a real one. It reaches the instances without a data plane here, so that they are HEALTHY all the
time, and GAS is 0 for the data plane's sake alone."""
import os
import pathlib
import re
import signal
import subprocess
import time

from case import await_true
from control import Control
from dataplane import BUILD
from site_file import Sci
from test_control import HEALTH, ControlCase

PROGRAM = BUILD / 'tests' / 'support' / 'hostile_data_plane'
SCI = Sci(limits=(100, 100, 100), extra=tuple(line for line in HEALTH if not line.startswith('report')) +
          ('report: {interval: 1s}',))
SESSIONS_MAX = 2**24 - 1                   # of one instance, where an operator sets it
TICK = os.sysconf('SC_CLK_TCK')

# What `show table` gives as the reason, and so the log.
TURNED_AWAY = {
    'silent': 'the data plane says nothing',
    'closes': 'the data plane closed the connection',
    'version': 'the data plane sent protocol version 9, expected 1',
    'long-snapshot': 'the running snapshot is longer than its buffer',
    'no-descriptors': 'expected a welcome with two descriptors',
    'unsealed-buffers': "the other side's shared memory is not sealed against shrinking",
    'short-buffers': "the other side's shared memory has 4096 bytes, expected ",
    'no-memory': "the other side's shared memory is not sealed against shrinking",
    'huge-counters': 'the counters have an impossible size',
    'few-counters': r'counters: \d+ bytes, expected \d+',
    # By how far it has shrunk when it is looked at.
    'unsealed-counters': "the other side's shared memory is not sealed|the counters have an impossible size",
}
PARTED = {
    'welcomes-and-closes': 'the data plane closed the connection',
    'half-a-message': 'the data plane sent a message of 100 bytes, expected 256',
    'flood': 'the data plane sent more than 64 messages at once',
    'ack-ahead': r'the data plane acked generation 1000, expected \d+ to \d+',
    'ack-back': r'the data plane acked generation 0, expected \d+ to \d+',
    'answers-twice': 'the data plane gave back a buffer that it does not have',
    'strange-worker': 'the data plane named worker 99 of 2',
    'descriptors': 'the data plane sent descriptors that nobody asked for',
}
AGAIN = ('silent', 'closes', 'version', 'welcomes-and-closes', 'flood')     # more than one connection of these


class HostileDataPlane(ControlCase):
    def setUp(self):
        super().setUp()
        self.socket = f'{self.folder}/dataplane.sock'
        with open(self.site_file, 'w') as f:
            f.write(self.text())
        self.control = Control(self.net, self.folder, self.site_file, namespace='forwarder')
        self.addCleanup(self.control.kill)
        self.hostile = None

    def text(self):
        return super().text(SCI)

    def be(self, deed):
        """Another data plane instead of the one that is there."""
        if self.hostile:
            self.assertIsNone(self.hostile.poll(), 'the hostile data plane has ended by itself')
            self.net.stop(self.hostile, signal.SIGKILL)
        self.hostile = self.net.start('sci', PROGRAM, self.socket, deed) if deed else None

    def used(self):
        """Of margay-control: (seconds of CPU, resident KiB, open descriptors)."""
        of = pathlib.Path(f'/proc/{self.control.process.pid}')
        words = (of / 'stat').read_text().rpartition(')')[2].split()
        resident = int(re.search(r'VmRSS:\s+(\d+)', (of / 'status').read_text())[1])
        return (int(words[11]) + int(words[12])) / TICK, resident, len(list((of / 'fd').iterdir()))

    def meet(self, deed, words='data plane connected'):
        """Lets it do its deed until the log says these words and a while longer; the log's lines and the reports of
        that time."""
        lines, reports = len(self.control.log_text().splitlines()), len(self.control.reports())
        cpu, began = self.used()[0], time.monotonic()
        self.be(deed)
        await_true(f'the log says: {words}',
                   lambda: re.search(words, '\n'.join(self.control.log_text().splitlines()[lines:])), 5)
        time.sleep(1.5 if deed in AGAIN else 0.2)
        took = time.monotonic() - began
        self.assertEqual(self.control.run('version').returncode, 0)
        self.assertLess(self.used()[0] - cpu, 0.5 * took)
        said = self.control.log_text().splitlines()[lines:]
        told = [line for line in said if 'msg="report"' not in line]
        # At most three lines a connection, and a connection a second, once the first ones have failed.
        self.assertLess(len(told), 4 + 3 * took, '\n'.join(told))
        return told, self.control.reports()[reports:]

    def shown(self):
        return self.control.show('health')['instances']

    def assert_no_capacity(self, reports):
        for r in reports:
            self.assertEqual((r['gas'], r['data_plane_lost'], r['health_summary']['healthy']), (0, True, 3))

    def await_good(self):
        self.be('good')
        self.await_gas(300)

    def test_one_after_the_other(self):
        self.await_good()
        _, resident, descriptors = self.used()
        self.be(None)
        self.await_gas(0)
        for deed, reason in TURNED_AWAY.items():
            with self.subTest(deed):
                told, reports = self.meet(deed, reason)
                self.assertEqual(len([line for line in told if re.search(reason, line)]), 1, '\n'.join(told))
                self.assert_no_capacity(reports)
        for deed, reason in PARTED.items():
            with self.subTest(deed):
                _, reports = self.meet(deed, reason)
                if deed != 'descriptors':              # alive until it gives them
                    self.assert_no_capacity(reports)
        for deed in ('frozen', 'truncates'):
            with self.subTest(deed):
                told, reports = self.meet(deed)
                self.assertEqual(len([line for line in told if 'data plane connected' in line]), 1)
                self.assert_no_capacity(reports)
        with self.subTest('frozen in the middle'):
            self.await_good()
            self.hostile.send_signal(signal.SIGSTOP)
            self.await_gas(0, 3)
            self.hostile.send_signal(signal.SIGCONT)
            self.await_gas(300, 3)
        self.be_alive_and_wrong()
        _, now_resident, now_descriptors = self.used()
        self.assertLess(now_resident, resident + 20_000)
        self.assertLessEqual(now_descriptors, descriptors + 2)
        self.serve_a_real_one()

    def be_alive_and_wrong(self):
        for deed in ('no-acks', 'absurd', 'random'):
            with self.subTest(deed):
                _, reports = self.meet(deed)
                for r in reports:
                    self.assertLessEqual(r['gas'], 3 * SESSIONS_MAX)
                if deed == 'absurd':                   # more sessions than there are slots
                    await_true('sums saturate', lambda: {row['active'] for row in self.shown()} == {2**32 - 1})
                    self.await_gas(0, 3)
                self.assertEqual({row['health'] for row in self.shown()}, {'HEALTHY'})
        with self.subTest('refuses'):
            told, _ = self.meet('refuses')
            self.assertEqual([line for line in told if not line.startswith('time=')], [])
            self.assertIn('forged', self.control.show('table')['last_refusal'])

    def serve_a_real_one(self):
        self.be(None)
        self.await_gas(0)
        self.start_data_plane()
        self.await_gas(300)
        self.assert_served(self.load(SCI, '--total', 60), 60)
        reports = self.control.reports()
        for a, b in zip(reports, reports[1:]):
            self.assertEqual((b['epoch'], int(b['sequence'])), (a['epoch'], int(a['sequence']) + 1))
