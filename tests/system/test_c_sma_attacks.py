# SPDX-License-Identifier: Apache-2.0
"""The attack table, as far as processes can make it: each attacker is refused by name, and a good SCI beside it stands
as it was."""
import glob
import pathlib
import sys
import time
import unittest

from c_sma_case import CSmaAlone, Reporter
from case import HERE, await_true
from pki import Pki
from test_clock import LIBRARY, sweep


def off_by(seconds):
    """Words before a program that make its wall clock so wrong."""
    return ('env', f'LD_PRELOAD={glob.glob(LIBRARY)[0]}', f'FAKETIME={seconds:+d}', 'FAKETIME_DONT_FAKE_MONOTONIC=1',
            'NO_FAKE_STAT=1')


class Scis(CSmaAlone):
    """Towards the C-SMA."""
    certificates = (*CSmaAlone.certificates, ('sci', 'other', 'VRS=192.0.2.66:80'),
                    ('sci', 'service', f'WEB={CSmaAlone.VRS}'), ('sci', 'leaving', f'VRS={CSmaAlone.VRS}'))

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.others = Pki(f'{cls.folder}/other-pki')
        cls.others.run('sci', 'vrs', f'VRS={cls.VRS}')
        cls.pki.run('--from', -10, '--days', 5, 'sci', 'expired', f'VRS={cls.VRS}')
        cls.pki.run('--from', 5, 'sci', 'early', f'VRS={cls.VRS}')

    def setUp(self):
        super().setUp()
        self.start()

    def assert_turned_away(self, certificate, reason, pki=None):
        """Before it has a stream: nothing of it is read."""
        reporter = Reporter(self, certificate, self.VRS, 'VRS', pki)
        self.assertIn('ended', reporter.report(50))
        self.await_audit('REFUSED', reason)
        self.assertIsNone(self.source(self.VRS))
        self.assertNotIn(('VRS', self.VRS), self.held())
        self.assert_web_stands()

    def assert_refused(self, reporter, reason, **more):
        answer = reporter.report(50, **more)
        self.assertEqual((answer.get('verdict'), answer.get('reason')), ('REFUSED', reason))
        self.await_audit('REFUSED', reason)
        self.assertEqual(self.reasons()[reason], 1)
        self.assertNotIn(('VRS', self.VRS), self.held())
        self.assert_web_stands()

    def test_unknown_ca(self):
        """CSMA-131, 132, 186."""
        self.assert_turned_away('vrs', 'unknown_ca', self.others)

    def test_expired_certificate(self):
        """CSMA-132."""
        self.assert_turned_away('expired', 'certificate_expired')

    def test_certificate_of_tomorrow(self):
        """CSMA-132."""
        self.assert_turned_away('early', 'certificate_not_yet_valid')

    def test_a_c_ps_is_no_sci(self):
        """CSMA-131, 132."""
        self.assert_turned_away('cps', 'wrong_name')

    def test_wrong_csci_id(self):
        """CSMA-33, 132, D-16: the certificate names another SCI."""
        self.assert_refused(Reporter(self, 'other', self.VRS, 'VRS'), 'NOT_IN_CERTIFICATE')

    def test_somebody_elses_csci_id(self):
        """CSMA-33, 132, D-16, D-31: of an SCI that reports; its own stream is left alone."""
        answer = Reporter(self, 'vrs', self.WEB, 'WEB').report(1, sequence=10 ** 6)
        self.assertEqual((answer['verdict'], answer['reason']), ('REFUSED', 'NOT_IN_CERTIFICATE'))
        self.await_audit('REFUSED', 'NOT_IN_CERTIFICATE')
        self.assert_web_stands()
        self.assertEqual(self.source(self.WEB, 'identity'), 'CN=web')

    def test_csci_id_that_the_site_does_not_list(self):
        """CSMA-131: what a certificate allows, the site file must allow too."""
        self.assert_refused(Reporter(self, 'other', '192.0.2.66:80', 'VRS'), 'NOT_LISTED')

    def test_unauthorised_cs_id(self):
        """CSMA-187, D-16: by the certificate, and by the site file."""
        self.assert_refused(Reporter(self, 'service', self.VRS, 'VRS'), 'NOT_IN_CERTIFICATE')
        self.assert_refused(Reporter(self, 'service', self.VRS, 'WEB'), 'WRONG_CS_ID')

    def test_revoked_during_its_session(self):
        """CSMA-135, D-39: its stream ends, and its SCI is withdrawn at once."""
        leaving = Reporter(self, 'leaving', self.VRS, 'VRS').keep(50)
        self.await_held('VRS', self.VRS, 50)
        self.pki.run('revoke', 'leaving')
        revoked = time.monotonic()
        await_true('it is withdrawn', lambda: ('VRS', self.VRS) not in self.held(), 10)
        self.assertLess(time.monotonic() - revoked, self.TTL + self.GRACE)
        await_true('its stream ends', lambda: 'ended' in (leaving.last or ()))
        self.assertEqual(self.await_audit('REVOKED', '')['who'], 'CN=leaving')
        self.assertEqual(self.held()[('VRS', None)][2], 0)
        self.assert_turned_away('leaving', 'certificate_revoked')

    def test_more_than_its_ceiling(self):
        """D-10, CSMA-45: not the first time, and not after a good report."""
        greedy = Reporter(self, 'vrs', self.VRS, 'VRS')
        for gas in (4294967295, self.CEILING + 1):
            answer = greedy.report(gas)
            self.assertEqual((answer['verdict'], answer['reason']), ('QUARANTINED', 'GAS_CEILING'), gas)
            self.assertEqual(self.held().get(('VRS', self.VRS), (0, 0, 0))[2] or 0, 0)
        self.assertEqual(greedy.report(self.CEILING)['verdict'], 'ACCEPTED')
        self.await_held('VRS', self.VRS, self.CEILING)
        for _ in range(3):                  # a second report confirms an anomaly, but never a ceiling
            self.assertEqual(greedy.report(self.CEILING + 1)['reason'], 'GAS_CEILING')
        self.assertEqual(self.c_sma.show('quarantine')['quarantine'][0]['csci_id'], self.VRS)
        self.assertEqual(self.versions()[('VRS', self.VRS)][2], self.CEILING)
        self.await_audit('ANOMALY', 'GAS_CEILING')
        self.assert_web_stands()

    def test_sent_before(self):
        """CSMA-49, 50, 147, D-14: again, late, and of a process before."""
        vrs = Reporter(self, 'vrs', self.VRS, 'VRS')
        for gas in (50, 51, 52):
            self.assertEqual(vrs.report(gas)['verdict'], 'ACCEPTED')
        for sequence, epoch, reason in ((3, 0, 'DUPLICATE'), (1, 0, 'OLD_SEQUENCE'), (9, -1, 'OLD_EPOCH')):
            vrs.sequence = 3
            answer = vrs.report(99, sequence=sequence, epoch=vrs.epoch + epoch)
            self.assertEqual((answer['verdict'], answer['reason']), ('REFUSED', reason))
            self.await_audit('REFUSED', reason)
        self.await_held('VRS', self.VRS, 52)
        # By a connection of its own, as who recorded it would
        again = Reporter(self, 'vrs', self.VRS, 'VRS')
        again.send(vrs.message(99, sequence=3))
        self.assertEqual(again.answer()['reason'], 'DUPLICATE')
        self.assertEqual(vrs.report(53, sequence=10)['verdict'], 'ACCEPTED')
        self.assert_web_stands()

    def test_torn_and_senseless(self):
        """CSMA-43, 55, 192."""
        torn = Reporter(self, 'vrs', self.VRS, 'VRS')
        torn.send(torn.message(50)[:-4])      # in the middle of the health summary
        self.assertEqual(torn.answer().get('reason', 'UNREADABLE'), 'UNREADABLE')
        self.await_audit('REFUSED', 'UNREADABLE')
        for reason, more in (('INCONSISTENT_COUNTS', {'health': (1, 0, 0, 1)}), ('OUT_OF_RANGE', {'reputation': 11}),
                             ('MALFORMED', {'sequence': 0})):
            self.assert_refused(Reporter(self, 'vrs', self.VRS, 'VRS'), reason, **more)

    def clock_off(self, offset):
        """What an SCI with such a clock is told of two reports."""
        vrs = Reporter(self, 'vrs', self.VRS, 'VRS')
        answers = [vrs.report(50, at=time.time() + offset) for _ in range(2)]
        vrs.close()
        return {(answer['verdict'], answer['reason']) for answer in answers}

    def test_clock_off_by_31_seconds(self):
        """D-15: refused, either way."""
        for offset in (31, -31):
            self.assertEqual(self.clock_off(offset), {('REFUSED', 'SKEW')})
        self.await_audit('REFUSED', 'SKEW')
        self.assertNotIn(('VRS', self.VRS), self.held())
        self.assert_web_stands()

    def test_clock_off_by_20_seconds(self):
        """D-15, D-28: an alarm names it, and it is heard."""
        self.assertEqual(self.clock_off(-20), {('ACCEPTED', '')})
        self.assertEqual(self.await_audit('SKEW', 'its clock is off by -2')['who'], 'CN=vrs')
        self.assertTrue(-21000 < self.source(self.VRS, 'skew_ms') < -19000)
        self.assert_web_stands()


class CPses(CSmaAlone):
    """Between the C-SMA and C-PSes that are not what they say, or may not have what they want."""
    certificates = (*CSmaAlone.certificates, ('c-ps', 'cps-2'), ('c-ps', 'leaving'), ('c-sma', 'edge-9'),
                    ('c-sma', 'edge-leaving'), ('signing-key', 'k2'))

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.others = Pki(f'{cls.folder}/other-pki')
        cls.others.run('c-ps', 'cps')
        cls.others.run('c-sma', 'edge-1')
        cls.pki.run('--from', -10, '--days', 5, 'c-ps', 'expired')

    def faults(self):
        return {r['reason'] for r in self.c_sma.show('c-ps')['faults']}

    def start_with(self, c_ps=None, **kwargs):
        """A C-SMA, and an SCI."""
        self.start_c_sma(c_ps=c_ps or (('cps', 'cps', 'WEB, VRS'),), **kwargs)
        self.web = Reporter(self, 'web', self.WEB).keep(60)
        await_true('the SCI is known', lambda: self.source(self.WEB) == 'HEALTHY')

    def assert_away(self, reason, identity='cps'):
        """The C-SMA refuses the C-PS by this name and sends it nothing."""
        await_true(f'refused as {reason}', lambda: reason in (self.c_ps(identity)['why'] or ''))
        self.assertEqual((self.c_ps(identity)['state'], self.c_ps(identity)['sent']), ('away', 0))
        self.assertEqual(self.cps.show('sessions')['c_smas'][0]['messages'], 0)
        self.assertEqual(self.cps.rows(), [])

    def test_c_ps_of_an_unknown_ca(self):
        """CSMA-136, 137, 186."""
        self.cps = self.start_cps(security=self.others.section('cps', believes=self.pki))
        self.start_with()
        self.assert_away('unknown_ca')

    def test_c_ps_with_an_expired_certificate(self):
        """CSMA-137."""
        self.cps = self.start_cps(identity='expired')
        self.start_with(c_ps=(('expired', 'cps', 'WEB'),))
        self.assert_away('certificate_expired', 'expired')

    def test_c_ps_of_another_name(self):
        """CSMA-136, 137, 139: a good certificate, but not the one that the site file names at this address."""
        self.cps = self.start_cps(identity='cps-2')
        self.start_with()
        self.assert_away('wrong_name')

    def test_c_ps_is_revoked_during_its_session(self):
        """CSMA-135, 136: it hears nothing more."""
        self.cps = self.start_cps(identity='leaving')
        self.start_with(c_ps=(('leaving', 'cps', 'WEB'),))
        self.await_held('WEB', self.WEB, 60)
        self.pki.run('revoke', 'leaving')
        await_true('its session ends', lambda: self.c_ps('leaving')['state'] == 'away')
        await_true('by name', lambda: 'certificate_revoked' in self.c_ps('leaving')['why'])
        self.web.gas = 61
        await_true('GAS is another', lambda: self.versions()[('WEB', self.WEB)][2] == 61)
        self.c_sma.command('reconnect')
        time.sleep(2)
        self.assertEqual(self.held()[('WEB', self.WEB)][2], 60)
        self.assertEqual(self.c_ps('leaving')['state'], 'away')

    def test_c_ps_sees_only_what_it_may(self):
        """CSMA-139, 140, 188: of the two CS-IDs that it asks for it may see one."""
        self.cps = self.start_cps()
        self.start_with(c_ps=(('cps', 'cps', 'WEB'),))
        vrs = Reporter(self, 'vrs', self.VRS, 'VRS').keep(50)
        self.await_held('WEB', self.WEB, 60)
        await_true('VRS is advertised', lambda: ('VRS', self.VRS) in self.versions())
        vrs.gas, self.web.gas = 51, 61
        self.await_held('WEB', self.WEB, 61)
        self.cps.command('sync', 'edge-1')
        self.web.gas = 62
        self.await_held('WEB', self.WEB, 62)
        self.assertEqual({cs_id for cs_id, _ in self.held()}, {'WEB'})

    def test_c_ps_that_asks_only_for_what_it_may_not_see(self):
        """CSMA-139, 188."""
        self.cps = self.start_cps(cs_ids=('VRS',))
        self.start_with(c_ps=(('cps', 'cps', 'WEB'),))
        await_true('refused', lambda: 'no_common_cs_id' in self.faults())
        self.assertEqual((self.cps.rows(), self.c_ps()['sent']), ([], 0))

    # Towards the C-PS

    def refused(self):
        return {r['reason'] for r in self.cps.show('sessions')['refused']}

    def turned_away(self):
        return {r['reason'] for r in self.cps.show('sessions')['turned_away']}

    def test_c_sma_of_an_unknown_ca(self):
        """CSMA-130, 186: at the C-PS."""
        self.cps = self.start_cps()
        self.start_c_sma(security=self.others.section('edge-1', believes=self.pki))
        await_true('turned away', lambda: 'unknown_ca' in self.turned_away())
        self.assertEqual(self.cps.show('sessions')['c_smas'][0]['messages'], 0)

    def test_c_sma_that_the_c_ps_does_not_know(self):
        """CSMA-130: a certificate of the same CA is not enough."""
        self.cps = self.start_cps()
        self.start_with(security=self.pki.section('edge-9', 'k1'), identity='edge-9')
        await_true('turned away', lambda: 'unknown_c_sma' in self.turned_away())
        self.assertEqual(self.cps.rows(), [])

    def test_c_sma_that_does_not_sign_or_with_another_key(self):
        """CSMA-141, 142, 189: nothing of it is believed."""
        self.cps = self.start_cps()
        another = self.pki.section('edge-1', 'k1').replace('k1.sign.key', 'k2.sign.key')
        for security, reason in ((self.pki.section('edge-1'), 'unsigned'),
                                 (self.pki.section('edge-1', 'k2'), 'unknown_key'), (another, 'bad_signature')):
            self.start_with(security=security)
            await_true(f'refused as {reason}', lambda reason=reason: reason in self.refused())
            self.assertEqual(self.cps.rows(), [])
            self.web.close()
            self.c_sma.kill()

    def test_c_sma_is_revoked_during_its_session(self):
        """CSMA-135: its session ends; what it said stands for as long as it is valid (D-41)."""
        self.cps = self.start_cps()
        text = pathlib.Path(self.cps.site).read_text()
        self.cps.kill()
        pathlib.Path(self.cps.site).write_text(text.replace('identity: edge-1', 'identity: edge-leaving'))
        self.cps.start()
        self.start_with(security=self.pki.section('edge-leaving', 'k1'), identity='edge-leaving')
        self.await_held('WEB', self.WEB, 60)
        self.pki.run('revoke', 'edge-leaving')
        await_true('its session ends', lambda: self.cps.show('sessions')['c_smas'][0]['state'] == 'away')
        await_true('it is turned away', lambda: 'certificate_revoked' in self.turned_away())
        self.assertEqual(self.held()[('WEB', self.WEB)][2], 60)

    @unittest.skipUnless(glob.glob(LIBRARY), 'needs libfaketime')
    def test_c_sma_whose_clock_is_off_by_31_seconds(self):
        """CSMA-145: refused either way by the C-PS's window, or the C-PS by the C-SMA's."""
        self.addCleanup(sweep)
        self.cps = self.start_cps()
        for offset in (31, -31):
            self.start_c_sma(under=off_by(offset), name=f'c-sma{offset}')
            await_true('refused', lambda: (self.refused() | self.faults()) & {'too_new', 'too_old'})
            self.assertEqual(self.cps.rows(), [])
            self.c_sma.kill()
