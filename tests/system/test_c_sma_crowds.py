# SPDX-License-Identifier: Apache-2.0
"""Peers that want too much of a C-SMA or a C-PS: ten thousand connections that say nothing; a C-PS that reads nothing
while hundreds of SCIs report."""
import os
import pathlib
import signal
import sys
import threading
import time

from c_sma_case import CSmaAlone, Reporter, descriptors, resident
from case import HERE, await_true
from many_scis import csci_id


class Idle(CSmaAlone):
    COUNT = 10_000
    ROOM = 4096             # connections that a server holds, with two descriptors each
    USUAL = ('prlimit', '--nofile=1024:20000')      # what a shell or a service manager gives
    MEMORY = 250 * 1024     # KiB that they may cost, each before its first byte

    def crowd(self, address, port):
        """They come; when all of them have been let in by the kernel it returns."""
        opened = pathlib.Path(self.here, 'idle')
        with opened.open('w') as out:
            idle = self.net.start('far', sys.executable, HERE / 'idle_clients.py', address, port, self.COUNT,
                                  stdout=out)
        self.addCleanup(self.net.stop, idle)
        await_true('they are open', lambda: opened.read_text() == f'{self.COUNT}\n', 60)

    def watch(self, process):
        """From now on. What it returns ends that and gives the most descriptors and memory beyond what there was."""
        before, most, going = (descriptors(process), resident(process)), [0, 0], True

        def look():
            while going:
                most[:] = map(max, most, (descriptors(process), resident(process)))
                time.sleep(0.05)

        thread = threading.Thread(target=look)
        thread.start()

        def end():
            nonlocal going
            going = False
            thread.join()
            return [m - b for m, b in zip(most, before)]

        self.addCleanup(end)
        return end

    def assert_bounded(self, process, end, before):
        """While they were there, and that they are gone soon: a handshake has 10 s."""
        await_true('their descriptors are free', lambda: descriptors(process) < before + 100, 40)
        opened, grown = end()
        self.assertGreater(opened, self.ROOM)       # they were there
        self.assertLess(opened, 2 * self.ROOM + 400)
        self.assertLess(grown, self.MEMORY)

    def test_at_the_c_sma(self):
        """CSMA-191: SCIs that are connected report on, and another one can still come."""
        self.start(under=self.USUAL)
        before, end = descriptors(self.c_sma.process), self.watch(self.c_sma.process)
        self.crowd(self.at['c-sma'], 7443)
        self.assert_web_stands()
        began = time.monotonic()
        self.assertEqual(Reporter(self, 'vrs', self.VRS, 'VRS').report(50).get('verdict'), 'ACCEPTED')
        self.assertLess(time.monotonic() - began, 10)
        self.await_held('VRS', self.VRS, 50)
        self.assert_bounded(self.c_sma.process, end, before)
        self.assert_web_stands()

    def test_at_the_c_ps(self):
        """CSMA-191: the C-SMA is heard on, and its next process too."""
        self.start()
        self.cps.kill()
        self.cps = self.start_cps(under=self.USUAL)
        self.await_held('WEB', self.WEB, 60)
        before, end = descriptors(self.cps.process), self.watch(self.cps.process)
        self.crowd(self.at['cps'], 7444)
        self.web.gas = 61
        self.await_held('WEB', self.WEB, 61, 5)
        self.c_sma.kill()
        self.web.close()
        self.start_c_sma('c-sma2')
        self.web = Reporter(self, 'web', self.WEB).keep(62)
        self.await_held('WEB', self.WEB, 62, 20)
        self.assert_bounded(self.cps.process, end, before)


class ReadsNothing(CSmaAlone):
    SCIS, RATE = 50, 400
    SECONDS = int(os.environ.get('MARGAY_MUTE_SECONDS', 25))
    FLAT = 1500             # KiB
    OTHERS = [csci_id(n) for n in range(SCIS)]
    certificates = (*CSmaAlone.certificates, ('sci', 'many', *(f'WEB={other}' for other in OTHERS)))

    def commits(self):
        return max((version[1] for version in self.versions().values()), default=0)

    def test_memory_is_flat(self):
        """CSMA-171, 172, 177, D-13: it greets, acks that, and reads no more, session after session; rows meet in the
        buffer, and what a C-PS does not take costs no memory. MARGAY_MUTE_SECONDS: for how long."""
        sessions = pathlib.Path(self.here, 'sessions')
        pki = [self.pki.file(name) for name in ('ca.pem', 'cps.pem', 'cps.key')]
        with sessions.open('w') as out:
            mute = self.net.start('cps', sys.executable, HERE / 'mute_cps.py', 7444, *pki, 'cps', 'edge-1', stdout=out)
        self.addCleanup(self.net.stop, mute, signal.SIGKILL)
        self.start_c_sma(accept=self.OTHERS)
        pki = [self.pki.file(name) for name in ('ca.pem', 'many.pem', 'many.key')]
        scis = self.net.start('far', sys.executable, HERE / 'many_scis.py', self.at['c-sma'], 7443, *pki, 'WEB',
                              self.SCIS, self.RATE)
        self.addCleanup(self.net.stop, scis, signal.SIGKILL)
        await_true('a session', lambda: sessions.read_text(), 30)
        await_true('they report', lambda: self.commits() > 10 * self.SCIS, 20)
        await_true('and it does not read', lambda: self.c_ps()['unacked'] > 0, 20)
        await_true('a second session', lambda: sessions.read_text().count('session') > 1, 30)
        before, commits, until = resident(self.c_sma.process), self.commits(), time.monotonic() + self.SECONDS
        sizes = []
        while time.monotonic() < until:
            sizes.append(resident(self.c_sma.process))
            time.sleep(1)
        if 'MARGAY_MUTE_SECONDS' in os.environ:
            print(f'resident KiB: {before}, then {min(sizes)} to {max(sizes)}, {sizes[-1]} at last; '
                  f'{self.commits() - commits} commits, {sessions.read_text().count("session")} sessions', flush=True)
        self.assertLess(max(sizes) - before, self.FLAT)
        self.assertGreater(self.commits() - commits, self.SECONDS * self.RATE / 4)
        self.assertIsNone(scis.poll())
        self.net.stop(mute, signal.SIGKILL)
        self.cps = self.start_cps()
        await_true('all rows at a C-PS that reads', lambda: len(self.held()) == self.SCIS + 1, 30)
        self.net.stop(scis, signal.SIGKILL)
        self.await_equal()
