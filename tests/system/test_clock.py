# SPDX-License-Identifier: Apache-2.0
"""The wall clock of both programs set back and forth under traffic (D-14, D-15): no timer, age or order changes.
libfaketime shifts what these two processes read as CLOCK_REALTIME; the machine's own clock stays as it is."""
import datetime
import glob
import os
import re
import socket
import threading
import time
import unittest

from case import await_true
from site_file import Sci
from test_control import HEALTH, ControlCase

HOUR = 3600
LIBRARY = '/usr/lib/*/faketime/libfaketimeMT.so.1'
EXTRA = tuple(line for line in HEALTH if not line.startswith('report')) + (
    'report: {interval: 1s}',
    'drain_deadline: 7s',
    'metrics: {prometheus: "http://{address}:{port}/metrics", interval: 1s, names: {load: work}}')
BUSY = Sci(limits=(100, 100, 100), extra=EXTRA)
IDLE = Sci(port=81, cs_id='IDLE', limits=(100, 100, 100), affinity='10s', extra=EXTRA)


class Reports(threading.Thread):
    """Each report of one SCI from now on, as it comes: (monotonic time, report)."""

    def __init__(self, control, csci_id):
        super().__init__(daemon=True)
        self.control, self.csci_id = control, csci_id
        self.seen, self.ended, self.known = [], False, len(self.all())
        self.start()

    def all(self):
        return [r for r in self.control.reports() if r['csci_id'] == self.csci_id]

    def run(self):
        while not self.ended:
            self.seen += [(time.monotonic(), r) for r in self.all()[self.known + len(self.seen):]]
            time.sleep(0.02)

    def end(self):
        self.ended = True
        self.join()


def unix_time(text):
    return datetime.datetime.fromisoformat(re.sub(r'(\.\d+)?Z$', '+00:00', text)).timestamp()


@unittest.skipUnless(glob.glob(LIBRARY), 'needs libfaketime')
class Clock(ControlCase):
    def setUp(self):
        super().setUp()
        self.clock_file = f'{self.folder}/clock'
        self.set_clock(0)
        with open(f'{self.folder}/metrics', 'w') as f:
            f.write('work 7\n')
        self.under = ('env', f'LD_PRELOAD={glob.glob(LIBRARY)[0]}', f'FAKETIME_TIMESTAMP_FILE={self.clock_file}',
                      'FAKETIME_NO_CACHE=1', 'FAKETIME_DONT_FAKE_MONOTONIC=1', 'NO_FAKE_STAT=1')

    def text(self):
        return super().text(BUSY, IDLE)

    def set_clock(self, offset):
        self.offset = offset
        with open(f'{self.clock_file}.new', 'w') as f:
            f.write(f'{offset:+d}\n')
        os.rename(f'{self.clock_file}.new', self.clock_file)

    def assert_clock(self, text):
        self.assertLess(abs(unix_time(text) - time.time() - self.offset), 60, text)

    def assert_clocks_moved(self):
        """What both processes say of the time now."""
        known = len(self.control.reports())
        await_true('a report comes', lambda: len(self.control.reports()) > known)
        self.assert_clock(self.control.reports()[-1]['timestamp'])
        log = self.dataplane.log_text()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as second:
            second.connect(f'{self.folder}/dataplane.sock')
            await_true('the data plane turns a second control plane away',
                       lambda: 'turned away' in self.dataplane.log_text()[len(log):])
        self.assert_clock(re.findall(r'^time=(\S+) ', self.dataplane.log_text(), re.M)[-1])

    def ages(self):
        """When, and how long each instance is in its health, by both planes and CSCI-ID."""
        at = time.monotonic()
        told = self.control.show('health')['instances']
        ages = {('control', r['csci_id'], r['si_id']): r['for_s'] for r in told}
        told = self.dataplane.show('table')['instances']
        ages |= {('data', r['csci_id'], r['si_id']): r['health_seconds'] for r in told}
        return at, ages

    def assert_ages(self, before):
        then, old = before
        now, new = self.ages()
        for name, age in new.items():
            self.assertLess(abs(age - old[name] - (now - then)), 1.5, name)
        metrics = self.control.show('metrics')['metrics']
        self.assertEqual(len(metrics), 6)
        for row in metrics:
            self.assertLess(row['age_ms'], 3000, row)

    def assert_reports(self, seen):
        """In order, and the periodic ones a second apart by our own CLOCK_MONOTONIC."""
        for (_, a), (_, b) in zip(seen, seen[1:]):
            self.assertEqual((b['epoch'], int(b['sequence'])), (a['epoch'], int(a['sequence']) + 1))
        periodic = [at for at, r in seen if 'TRIGGER_PERIODIC' in r['reasons']]
        for a, b in zip(periodic, periodic[1:]):
            self.assertTrue(0.3 < b - a < 2.5, b - a)
        self.assertLessEqual(abs(len(periodic) - 1 - round(periodic[-1] - periodic[0])), 1)
        for _, r in seen:
            self.assertLess(float(r['ledger_age'].rstrip('s')), 2)

    def test_set_back_and_forth_by_an_hour(self):
        self.start_data_plane()
        self.control = self.start_control()
        await_true('all serve', lambda: {r['gas'] for r in self.control.reports()[-2:]} == {300})
        load = self.start_load(BUSY, '--seconds', 18, '--at-once', 3)
        held = self.start_load(BUSY, '--hold', 9, '--at-once', 5, '--talk')
        result = self.result(held)
        self.assert_served(result, 9)
        on = {name: result['instances'].get(name, 0) for name in ('si-1', 'si-2', 'si-3')}
        self.assertGreater(on['si-3'], 0)
        idle = self.start_load(IDLE, '--hold', 6, '--at-once', 5)
        self.assert_served(self.result(idle), 6)
        began_idle = time.monotonic()
        reports = [Reports(self.control, sci.csci_id) for sci in (BUSY, IDLE)]
        log = len(self.control.log_text())
        self.assert_clocks_moved()
        before = self.ages()
        self.control.command('drain', BUSY.csci_id, 'si-3')
        drained = time.monotonic()

        self.set_clock(HOUR)
        self.assert_clocks_moved()
        self.assert_ages(before)
        time.sleep(max(0, drained + 3 - time.monotonic()))
        self.set_clock(-HOUR)
        self.assert_clocks_moved()
        self.assert_ages(before)

        # The deadline of the drain, and the affinity of flows without packets, both set before.
        time.sleep(max(0, drained + 5.5 - time.monotonic()))
        self.assertEqual((self.slots_of(BUSY)['si-3']['active'], self.active(IDLE)), (on['si-3'], 6))
        await_true('the drain ends', lambda: self.slots_of(BUSY)['si-3']['active'] == 0, 5)
        self.assertLess(abs(time.monotonic() - drained - 7), 1)
        time.sleep(max(0, began_idle + 8.5 - time.monotonic()))
        self.assertEqual(self.active(IDLE), 6)
        await_true('the affinity ends', lambda: self.active(IDLE) == 0, 5)
        self.assertLess(abs(time.monotonic() - began_idle - 10), 1)

        self.set_clock(0)
        self.assert_clocks_moved()
        self.assert_ages(before)
        result = self.result(load)
        self.assertEqual(result['failures'], {})
        self.assertGreater(result['ok'], 100)
        told = self.finish_talk(held)
        self.assertEqual({name: row['open'] for name, row in told.items()}, on | {'si-3': 0})
        for r in reports:
            r.end()
            self.assert_reports(r.seen)
        said = self.control.log_text()[log:]
        for alarm in ('health changed', 'data plane lost', 'makes no progress'):
            self.assertNotIn(alarm, said)

        # A control plane that begins an hour too early still has the higher epoch (D-14).
        epoch = max(int(r['epoch']) for r in self.control.reports())
        known = len(self.control.reports())
        self.set_clock(-HOUR)
        self.control.kill()
        self.control = self.start_control('control2')
        await_true('it reports', lambda: len(self.control.reports()) > known + 1)
        first = self.control.reports()[known]
        self.assert_clock(first['timestamp'])
        self.assertEqual((first['trigger'], int(first['epoch'])), ('TRIGGER_START', epoch + 1))
