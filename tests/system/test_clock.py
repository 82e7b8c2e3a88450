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
from test_control import ControlCase

HOUR = 3600
LIBRARY = '/usr/lib/*/faketime/libfaketimeMT.so.1'
EXTRA = (
    'health:',                             # five failures: a busy machine makes none UNHEALTHY
    '  confirm_interval: 500ms',
    '  liveness: {http: "http://{address}:{port}/", interval: 2s, timeout: 1900ms, fall: 5, rise: 2}',
    'report: {interval: 1s}',
    'drain_deadline: 7s',
    'metrics: {prometheus: "http://{address}:{port}/metrics", interval: 3s, names: {load: work}}')
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


def sweep():
    """What libfaketime leaves behind of a process that was killed."""
    for file in glob.glob('/dev/shm/*faketime_s*_*'):
        if not os.path.exists(f'/proc/{file.rpartition("_")[2]}'):
            os.unlink(file)


@unittest.skipUnless(glob.glob(LIBRARY), 'needs libfaketime')
class Clock(ControlCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(sweep)
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
        """How long each instance is in its health, by both planes and CSCI-ID, and between when and when we asked."""
        began = time.monotonic()
        told = self.control.show('health')['instances']
        ages = {('control', r['csci_id'], r['si_id']): r['for_s'] for r in told}
        told = self.dataplane.show('table')['instances']
        ages |= {('data', r['csci_id'], r['si_id']): r['health_seconds'] for r in told}
        return began, time.monotonic(), ages

    def assert_ages(self, before):
        (old_began, old_ended, old), (began, ended, new) = before, self.ages()
        for name, age in new.items():
            self.assertGreater(age - old[name], began - old_ended - 1.5, name)
            self.assertLess(age - old[name], ended - old_began + 1.5, name)
        metrics = self.control.show('metrics')['metrics']
        self.assertEqual(len(metrics), 6)
        for row in metrics:
            self.assertLess(row['age_ms'], 9500, row)

    def assert_reports(self, seen):
        """In order, and periodic ones about each second of our own CLOCK_MONOTONIC."""
        for (_, a), (_, b) in zip(seen, seen[1:]):
            self.assertEqual((b['epoch'], int(b['sequence'])), (a['epoch'], int(a['sequence']) + 1))
        periodic = [at for at, r in seen if 'TRIGGER_PERIODIC' in r['reasons']]
        span = periodic[-1] - periodic[0]
        self.assertTrue(0.6 * span < len(periodic) < span + 3, f'{len(periodic)} in {span} s')
        self.assertLess(max(b - a for a, b in zip(periodic, periodic[1:])), 5)
        for _, r in seen:
            self.assertLess(float(r['ledger_age'].rstrip('s')), 5)

    def assert_ends(self, began, seconds, held, read):
        """What is so many seconds from its beginning on is there until then, and not much longer."""
        time.sleep(max(0, began + seconds - 1.5 - time.monotonic()))
        found = read()
        if time.monotonic() < began + seconds - 0.5:       # else we were late ourselves
            self.assertEqual(found, held)
        await_true(f'it ends after {seconds} s', lambda: read() == 0, 8)
        self.assertGreater(time.monotonic() - began, seconds - 1)

    def test_set_back_and_forth_by_an_hour(self):
        self.start_data_plane()
        self.control = self.start_control()
        await_true('all serve', lambda: {r['gas'] for r in self.control.reports()[-2:]} == {300})
        await_true('all are scraped', lambda: len(self.control.show('metrics')['metrics']) == 6)
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
        self.assert_ends(drained, 7, on['si-3'], lambda: self.slots_of(BUSY)['si-3']['active'])
        self.assert_ends(began_idle, 10, 6, lambda: self.active(IDLE))

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
        for alarm in ('health changed', 'data plane lost'):
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
