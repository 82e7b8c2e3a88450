# SPDX-License-Identifier: Apache-2.0
"""C-PSes that are killed, frozen, mute or slam the door; SCIs that are killed, frozen or cut off; a C-SMA that is
frozen."""
import dataclasses
import itertools
import pathlib
import signal
import sys
import time

import site_file
from c_sma_case import CSmaAlone, Reporter, resident
from case import HERE, await_true
from control import Control
from dataplane import DataPlane
from site_file import Sci
from test_control import HEALTH

FLAT = 3000             # KiB that a process may grow by


class CPsFaults(CSmaAlone):
    def start_changing(self):
        """An SCI whose GAS is another in each of its reports, some 30 a second."""
        self.start()
        numbers = itertools.count()
        self.web.going = False
        time.sleep(0.5)
        self.web.keep(lambda: 60 + next(numbers) % 10, interval=0.03)

    def newest(self):
        return max(version[1] for version in self.versions().values())

    def assert_flat(self, seconds):
        """The C-SMA's memory while rows change."""
        time.sleep(2)                       # what is made once
        before, commits = resident(self.c_sma.process), self.newest()
        time.sleep(seconds)
        grown = resident(self.c_sma.process) - before
        self.assertGreater(self.newest() - commits, 5 * seconds)
        self.assertLess(grown, FLAT, f'{grown} KiB more than {before} KiB')
        self.assertEqual(self.source(self.WEB), 'HEALTHY')

    def test_frozen(self):
        """CSMA-171, 172, 175, 177, D-13: the buffer holds rows, and what a C-PS does not take costs no memory."""
        self.start_changing()
        self.cps.process.send_signal(signal.SIGSTOP)
        self.assert_flat(8)
        self.assertNotEqual(self.c_ps()['state'], 'in step')
        self.cps.process.send_signal(signal.SIGCONT)
        self.web.gas = 77
        self.await_held('WEB', self.WEB, 77)
        self.web.going = False
        self.await_held('WEB', None, 77)

    def test_killed_again_and_again(self):
        """CSMA-129, 158, 170: each time it has everything soon, although its C-SMA waits longer from try to try."""
        self.start_changing()
        for _ in range(3):
            self.cps.kill()
            await_true('the C-SMA sees it', lambda: self.c_ps()['state'] == 'away')
            self.cps.start()
            await_true('it has its rows', lambda: set(self.held()) == {('WEB', self.WEB), ('WEB', None)}, 15)
        self.web.gas = 77
        self.await_held('WEB', self.WEB, 77)

    def test_no_room_for_more_rows(self):
        """CSMA-160, D-13: what was there stands and goes on; both ends tell of what found no room."""
        self.cps = self.start_cps(extra='  max_rows: 2\n')
        self.start_c_sma()
        self.web = Reporter(self, 'web', self.WEB).keep(60)
        self.await_held('WEB', None, 60)
        Reporter(self, 'vrs', self.VRS, 'VRS').keep(50)
        await_true('the C-PS refuses it', lambda: self.c_ps()['rows_refused'] == 2)
        self.assertEqual([(s['rows'], s['rows_refused']) for s in self.cps.show('sessions')['c_smas']], [(2, 2)])
        self.assertEqual(set(self.held()), {('WEB', self.WEB), ('WEB', None)})
        self.web.gas = 61
        self.await_held('WEB', None, 61)

    def odd(self, what):
        """Such a C-PS in place of ours, and how many connections it has had."""
        self.start_changing()
        self.cps.kill()
        with open(f'{self.here}/odd', 'w') as out:
            server = self.net.start('cps', sys.executable, HERE / 'odd_server.py', 7444, what, stdout=out)
        self.addCleanup(self.net.stop, server)

        def connections():
            with open(f'{self.here}/odd') as f:
                return len(f.readlines())

        await_true('the C-SMA calls', lambda: connections() > 0)
        before = connections()
        self.assert_flat(6)
        called = connections() - before
        self.assertNotEqual(self.c_ps()['state'], 'in step')
        self.net.stop(server, signal.SIGKILL)
        self.cps.start()
        self.web.gas = 77
        self.await_held('WEB', self.WEB, 77, 20)
        return called

    def test_closes_at_once(self):
        """CSMA-129, 170: a connection that stands is no success; backoff goes on, here up to one second (D-50: at least
        0.75 of it)."""
        called = self.odd('close')
        self.assertGreater(called, 1)
        self.assertLess(called, 16)         # 8 s

    def test_says_nothing(self):
        """CSMA-170: it takes connections, and not one byte from them."""
        self.assertLess(self.odd('mute'), 4)


class Frozen(CSmaAlone):
    def test_a_frozen_c_sma_withdraws_nobody(self):
        """D-29, D-51: it was late itself, so that nobody was silent."""
        self.start()
        log = len(self.c_sma.log_text())
        self.c_sma.process.send_signal(signal.SIGSTOP)
        time.sleep(self.TTL + self.GRACE + 3)
        self.assertEqual(self.held()[('WEB', self.WEB)][2], 60)
        self.c_sma.process.send_signal(signal.SIGCONT)
        until = time.monotonic() + self.TTL + self.GRACE + 2
        while time.monotonic() < until:
            self.assertEqual(self.held()[('WEB', self.WEB)][2], 60)
            self.assertEqual(self.held()[('WEB', None)][2], 60)
            time.sleep(0.05)
        self.web.gas = 61
        self.await_held('WEB', self.WEB, 61)
        self.assertEqual([line for line in self.c_sma.log_text()[log:].splitlines() if 'to=FAILED' in line], [])
        self.assertEqual(self.source(self.WEB), 'HEALTHY')
        self.assertTrue(self.audit('SELF_DOUBT'))


SCI = Sci(address='192.0.2.21', limits=(40, 60), extra=(*HEALTH[:-1], 'report: {interval: 1s}'))


class WholeSite(CSmaAlone):
    """A whole SCI, with data plane and servers."""
    instances = 2
    GRACE = 4

    def setUp(self):
        super().setUp()
        self.cps = self.start_cps()
        self.start_c_sma()
        folder = self.sci_folder = pathlib.Path(self.here, 'sci')
        folder.mkdir()
        to = f'reports_to: {{address: "{self.at["c-sma"]}:7443", identity: edge-1}}'
        sci = dataclasses.replace(SCI, extra=(*SCI.extra, to))
        self.dataplane = DataPlane(self.net, folder, site_file.text(
            folder / 'cli.sock', (sci,), workers=1, control=folder / 'dataplane.sock', extra1=('kernel: mg1',)) +
            Control.section(folder) + self.pki.section('web'))
        self.addCleanup(lambda: self.net.stop(self.dataplane.process, signal.SIGKILL))
        self.start_sci()
        self.await_held('WEB', self.WEB, 100)

    def start_sci(self, name='control'):
        self.sci = Control(self.net, self.sci_folder, self.dataplane.site, name)
        self.addCleanup(self.sci.kill)

    def assert_withdrawn(self, began):
        """After TTL and grace, and not before; with the site's row, so that never one shows without the other."""
        await_true('STALE', lambda: self.source(self.WEB) == 'STALE', self.TTL + 5)
        while ('WEB', self.WEB) in (held := self.held()):
            self.assertEqual((held[('WEB', self.WEB)][2], held[('WEB', None)][2]), (100, 100))
            self.assertLess(time.monotonic() - began, self.TTL + self.GRACE + 10)
        self.assertEqual(held[('WEB', None)][2], 0)
        # Its last report may be an interval older than what was done to it.
        self.assertGreater(time.monotonic() - began, self.TTL + self.GRACE - 1.2)
        self.assertEqual(self.source(self.WEB), 'FAILED')
        self.assertEqual(self.await_audit('SOURCE_FAILED', '')['what'], self.WEB)

    def assert_back(self, seconds=20):
        self.await_held('WEB', self.WEB, 100, seconds)
        self.await_held('WEB', None, 100, 5)
        self.assertEqual(self.source(self.WEB), 'HEALTHY')


class SciFaults(WholeSite):
    def test_killed(self):
        """CSMA-67, 70, 71, 80, 81, 163, 166..169, D-1, D-2."""
        self.sci.kill()
        self.assert_withdrawn(time.monotonic())
        self.start_sci('control2')
        self.assert_back()

    def test_frozen(self):
        """CSMA-163: its connection stands, and it says nothing."""
        self.sci.process.send_signal(signal.SIGSTOP)
        self.assert_withdrawn(time.monotonic())
        self.sci.process.send_signal(signal.SIGCONT)
        self.assert_back()

    def test_cut_off(self):
        """CSMA-163, 165: the link between them is down, and up again."""
        self.net.ip('sci', 'link', 'set', 'management', 'down')
        self.addCleanup(self.net.ip, 'sci', 'link', 'set', 'management', 'up')
        self.assert_withdrawn(time.monotonic())
        self.net.ip('sci', 'link', 'set', 'management', 'up')
        self.assert_back()

    def test_a_short_freeze_withdraws_nothing(self):
        """CSMA-69, 80, D-27: STALE, asked, and HEALTHY again; what it said last stands."""
        self.sci.process.send_signal(signal.SIGSTOP)
        await_true('STALE', lambda: self.source(self.WEB) == 'STALE', self.TTL + 5)
        self.sci.process.send_signal(signal.SIGCONT)
        until = time.monotonic() + self.GRACE + 1
        while time.monotonic() < until:
            self.assertEqual(self.held()[('WEB', self.WEB)][2], 100)
            time.sleep(0.02)
        self.assert_back()
        self.assertEqual(self.audit('SOURCE_FAILED'), [])
