# SPDX-License-Identifier: Apache-2.0
"""Links that fall silent in the middle of TLS streams: nobody is told, and what is on its way is lost. For less than
TTL and grace nothing is withdrawn; for longer, the SCI is, on time."""
import signal
import time

from c_sma_case import CSmaAlone
from case import await_true
from test_c_sma_faults import WholeSite


class Silent:
    def cut(self, name):
        """The bridge drops all that this one sends and is sent; its own link stays up."""
        self.net.ip('management', 'link', 'set', name, 'nomaster')
        self.addCleanup(self.net.ip, 'management', 'link', 'set', name, 'master', 'bridge')

    def mend(self, name):
        self.net.ip('management', 'link', 'set', name, 'master', 'bridge')

    def assert_held_for(self, seconds, gas):
        """The C-PS has both rows all the time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            held = self.held()
            self.assertEqual((held[('WEB', self.WEB)][2], held[('WEB', None)][2]), (gas, gas))
            time.sleep(0.05)


class Collection(Silent, WholeSite):
    """Between a margay-control of role sci and its C-SMA."""
    TTL, GRACE = 4, 4

    def test_for_a_moment(self):
        """CSMA-67, 80, 163: shorter than TTL and grace."""
        streams = self.sci.show('reports-to')['reports_to'][0]['connections']
        self.cut('sci')
        self.assert_held_for(3, 100)
        self.mend('sci')
        self.assert_held_for(self.TTL + self.GRACE + 1, 100)
        self.assertEqual(self.source(self.WEB), 'HEALTHY')
        self.assertEqual(self.audit('SOURCE_FAILED'), [])
        self.assertEqual(self.sci.show('reports-to')['reports_to'][0]['connections'], streams)

    def test_for_long(self):
        """CSMA-67, 70, 71, 163, D-1: withdrawn with the site's row, after TTL and grace and not before."""
        self.cut('sci')
        self.assert_withdrawn(time.monotonic())
        self.mend('sci')
        self.assert_back(40)


class Northbound(Silent, CSmaAlone):
    """Between the C-SMA and its C-PS."""

    def test_for_a_moment(self):
        """CSMA-158, 170: shorter than either end waits, which is five seconds here; what was lost TCP sends again."""
        self.start()
        connections = self.c_ps()['connections']
        self.cut('cps')
        self.web.gas = 61
        self.assert_held_for(1, 60)
        self.mend('cps')
        self.await_held('WEB', self.WEB, 61, 10)
        self.await_held('WEB', None, 61, 2)
        self.assertEqual((self.c_ps()['connections'], self.c_ps()['state']), (connections, 'in step'))

    def test_for_long(self):
        """CSMA-158, 170, D-41: the session ends by name; what the C-PS has is marked as aged once it is not valid any
        more; when the link is back it is told at once that the SCI is gone since."""
        self.start()
        self.cut('cps')
        self.web.going = False
        await_true('no ack in time', lambda: self.c_ps()['state'] == 'away', 15)
        await_true('FAILED', lambda: self.source(self.WEB) == 'FAILED', self.TTL + self.GRACE + 5)
        self.assertEqual(self.held()[('WEB', self.WEB)][2], 60)
        await_true('aged', lambda: {r['state'] for r in self.cps.rows()} == {'aged'}, 20 + 5)
        self.mend('cps')
        await_true('withdrawn', lambda: ('WEB', self.WEB) not in self.held(), 15)
        self.assertEqual(self.held()[('WEB', None)][2], 0)
        self.await_equal()
