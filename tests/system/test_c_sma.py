# SPDX-License-Identifier: Apache-2.0
"""The whole site: data plane, margay-control as SCI and C-SMA, and a margay-cps at the far end of a management
network, with certificates of scripts/pki."""
import signal
import time

import site_file
from case import await_true
from control import Control
from cps import Cps
from pki import Pki
from site_file import Sci
from test_control import HEALTH, ControlCase

WEB = Sci(limits=(100, 100, 100), extra=HEALTH)
# Short where nothing is learned from waiting: heartbeat, minimum interval, wait for a C-PS.
UPDATES = 'updates: {heartbeat: 3s, minimum_interval: 100ms, valid_for: 20s, backoff: {initial: 200ms, max: 1s}}'


class CSmaCase(ControlCase):
    scis_here = (WEB,)
    c_sma_extra = ()

    @classmethod
    def prepare(cls):
        cls.at = cls.net.manage('sci', 'cps', 'far')
        cls.pki = Pki(f'{cls.folder}/pki')
        cls.pki.run('c-sma', 'edge-1')
        cls.pki.run('c-ps', 'cps')
        cls.pki.run('signing-key', 'k1')

    def c_sma(self, *lines):
        at = self.at
        text = (f'c_sma:\n  identity: edge-1\n  listen: {at["sci"]}:7443\n  {UPDATES}\n'
                f'  c_ps:\n    - {{protocol: grpc, address: "{at["cps"]}:7444", identity: cps, cs_ids: [WEB, FAR]}}\n')
        return text + ''.join(f'  {line}\n' for line in (*self.c_sma_extra, *lines))

    def text(self, *scis, lines=()):
        text = site_file.text(f'{self.folder}/cli.sock', scis or self.scis_here,
                              control=f'{self.folder}/dataplane.sock', extra1=('kernel: mg1',))
        return (text + Control.section(self.folder, role='both') + self.pki.section('edge-1', 'k1') +
                self.c_sma(*lines))

    def start_cps(self, **kwargs):
        cps = Cps(self.net, self.folder, self.pki, {'edge-1': ({'k1': self.pki.file('k1.sign.pub')}, ['WEB', 'FAR'])},
                  f'{self.at["cps"]}:7444', **kwargs)
        self.addCleanup(cps.kill)
        return cps

    def start(self):
        self.cps = self.start_cps()
        super().start()

    def versions(self):
        """What the C-SMA advertises, as a C-PS would have it: {(CS-ID, CSCI-ID): version and GAS}."""
        return {(r['cs_id'], r['csci_id']): (r['epoch'], r['commit'], r['gas']) for r in
                self.control.show('site')['rows']}

    def held(self, cps=None):
        return {(r['cs_id'], r['csci_id']): (r['epoch'], r['commit'], r['gas']) for r in (cps or self.cps).rows()}

    def await_equal(self, seconds=15):
        await_true('the C-PS has what the C-SMA advertises', lambda: self.held() and self.held() == self.versions(),
                   seconds)

    def await_held(self, gas, key=('WEB', WEB.csci_id), seconds=15):
        await_true(f'GAS {gas} of {key} at the C-PS', lambda: self.held().get(key, (0, 0, None))[2] == gas, seconds)


class EndToEnd(CSmaCase):
    def test_rows_arrive_and_follow(self):
        """CSMA-87, CSMA-88, CSMA-148, CSMA-149: GAS at the C-PS is that of the ledger, for the SCI and for the site."""
        self.start()
        self.await_held(300)
        self.await_held(300, ('WEB', None))
        self.await_equal()
        load = self.start_load(WEB, '--hold', 60, '--at-once', 1)
        self.result(load)
        self.await_held(240)
        self.await_held(240, ('WEB', None))
        self.finish(load)
        self.await_held(300)
        self.net.stop(self.servers[0].nginx, signal.SIGKILL)
        self.await_held(200)
        row = self.cps.rows(csci_id=WEB.csci_id)[0]
        self.assertEqual((row['healthy'], row['unhealthy'], row['health'], row['source']), (2, 1, 'HEALTHY', 'HEALTHY'))
        self.assertEqual(self.cps.show('sessions')['refused'], [])

    def test_a_c_ps_that_was_away_is_brought_up_to_date(self):
        """CSMA-157, CSMA-158, CSMA-171, CSMA-177."""
        self.start()
        self.await_held(300)
        self.cps.kill()
        await_true('the C-SMA sees it', lambda: self.control.show('c-ps')['c_ps'][0]['state'] == 'away')
        load = self.start_load(WEB, '--hold', 60, '--at-once', 1)
        self.result(load)
        self.await_gas(240)
        self.cps.start()
        self.await_equal()
        self.await_held(240)
        self.finish(load)

    def test_a_new_c_sma_withdraws_nothing_that_lives(self):
        """D-55: its first snapshot waits until it has heard of what it knew."""
        self.start()
        self.await_held(300)
        before = self.held()
        self.control.kill()
        self.control = self.start_control('control2')
        until = time.monotonic() + 5
        while time.monotonic() < until:
            self.assertEqual(self.held().keys(), before.keys())
            self.assertNotEqual(self.held()[('WEB', None)][2], 0)
            time.sleep(0.05)
        self.await_equal()
        self.assertGreater(self.held()[('WEB', None)][0], before[('WEB', None)][0])
