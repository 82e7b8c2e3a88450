# SPDX-License-Identifier: Apache-2.0
"""SCIs that cannot call their C-SMA, and are asked: one site with two of them, by gRPC and by HTTPS; and some that
answer otherwise than they should."""
import pathlib
import signal
import sys
import time

import site_file
from c_sma_case import CSmaAlone
from case import HERE, await_true
from control import Control
from dataplane import DataPlane
from peers import Instance
from pki import Pki
from site_file import Sci
from test_control import HEALTH

REPORT = 'report: {interval: 30s, rate: 20/s, burst: 20}'       # nothing comes by itself within the tests' TTL
SCIS = (Sci(address='192.0.2.21', limits=(40, 60), extra=(*HEALTH[:-1], REPORT)),
        Sci(address='192.0.2.22', cs_id='VRS', limits=(20, 30), extra=(*HEALTH[:-1], REPORT)))


class PullCase(CSmaAlone):
    """The SCIs' side: role sci, and nobody is called. Its data plane runs for all tests of a class; its control plane
    begins in each with start_sci()."""
    instances = 2
    certificates = (*CSmaAlone.certificates, ('c-sma', 'edge-2'),
                    ('sci', 'site', f'WEB={CSmaAlone.WEB}', f'VRS={CSmaAlone.VRS}'))
    EVERY = 1
    scis_of_site, certificate = SCIS, 'site'

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder_of_sci = pathlib.Path(cls.folder, 'sci')
        cls.folder_of_sci.mkdir()
        here = cls.folder_of_sci
        cls.dataplane = DataPlane(cls.net, here, site_file.text(
            here / 'cli.sock', cls.scis_of_site, workers=1, control=here / 'dataplane.sock', extra1=('kernel: mg1',)) +
            Control.section(here) +
            f'  pulled_by: {{grpc: "{cls.at["sci"]}:7445", http: "{cls.at["sci"]}:7446", identity: edge-1}}\n' +
            cls.pki.section(cls.certificate))

    def start_sci(self, name='control'):
        self.sci = Control(self.net, self.folder_of_sci, self.dataplane.site, name)
        self.addCleanup(self.sci.kill)

    def grpc(self, **more):
        return self.entry(self.WEB, 'grpc', f'{self.at["sci"]}:7445', **more)

    def http(self, at='sci', path=None, **more):
        return self.entry(self.VRS, 'http', f'https://{self.at[at]}:7446/v1/report/{path or self.VRS}', **more)

    def entry(self, csci_id, how, where, every=None, timeout=5):
        every = self.EVERY if every is None else every
        return f'{{csci_id: "{csci_id}", {how}: "{where}", every: {every}s, timeout: {timeout}s}}'

    @staticmethod
    def pull(*entries):
        return f'pull: [{", ".join(entries)}]'

    def row(self, csci_id):
        return next(r for r in self.c_sma.show('sources')['sources'] if r['csci_id'] == csci_id)

    def await_fault(self, csci_id, words, seconds=15):
        await_true(f'a pull of {csci_id} fails: {words}', lambda: words in (self.row(csci_id)['pull_fault'] or ''),
                   seconds)


class Pulled(PullCase):
    def setUp(self):
        super().setUp()
        self.cps = self.start_cps()
        self.start_c_sma(lines=(self.pull(self.grpc(), self.http()),))
        self.start_sci()
        self.await_held('WEB', self.WEB, 100)
        self.await_held('VRS', self.VRS, 50)

    def test_reports_come_by_both_ways(self):
        """CSMA-29, 30, 33, SCI-27: full, PULLED, one sequence; GAS follows within the interval."""
        for csci_id, by in ((self.WEB, 'grpc pull'), (self.VRS, 'http pull')):
            row = self.row(csci_id)
            self.assertEqual((row['by'], row['state'], row['verdict'], row['identity'], row['pull_fault']),
                             (by, 'HEALTHY', 'ACCEPTED', 'CN=site', None))
            self.assertEqual(row['trigger'], 'PULLED')
            await_true('asked again', lambda row=row: self.row(row['csci_id'])['pulled'] > row['pulled'] + 2)
            self.assertEqual(self.row(csci_id)['epoch'], row['epoch'])
            self.assertGreater(self.row(csci_id)['sequence'], row['sequence'])
        for report in self.sci.reports():
            if report['trigger'] == 'TRIGGER_PULLED':
                self.assertEqual(report['kind'], 'REPORT_KIND_FULL')
        self.net.stop(self.servers[0].nginx, signal.SIGKILL)
        self.addCleanup(lambda: self.servers.__setitem__(0, Instance(self.net, 'si-1', self.folder)))
        self.await_held('WEB', self.WEB, 60)
        self.await_held('VRS', self.VRS, 30)
        self.assertEqual(self.audit('REFUSED'), [])

    def test_killed(self):
        """CSMA-67, 69, 70, 163, 166..169: STALE, asked, FAILED, withdrawn with the site's row; and back."""
        self.sci.kill()
        for csci_id in (self.WEB, self.VRS):
            await_true('STALE', lambda c=csci_id: self.source(c) in ('STALE', 'FAILED'), self.TTL + 5)
        await_true('withdrawn', lambda: not {('WEB', self.WEB), ('VRS', self.VRS)} & set(self.held()), 20)
        self.assertEqual(self.held()[('WEB', None)][2], 0)
        for csci_id in (self.WEB, self.VRS):
            self.assertEqual(self.source(csci_id), 'FAILED')
            for kind in ('SOURCE_FAILED', 'PULL_FAILED'):
                await_true(f'{kind} of {csci_id}',
                           lambda k=kind, c=csci_id: c in [line['what'] for line in self.audit(k)])
        faults = {self.row(c)['pull_fault'] for c in (self.WEB, self.VRS)}
        self.assertIn("Couldn't connect to server: Connection refused", faults)
        self.start_sci('control2')
        self.await_held('WEB', self.WEB, 100, 20)
        self.await_held('VRS', self.VRS, 50, 20)

    def test_a_frozen_c_sma_withdraws_nothing(self):
        """D-29, D-51: that nobody was asked was its own doing."""
        self.c_sma.process.send_signal(signal.SIGSTOP)
        time.sleep(self.TTL + self.GRACE + 2)
        self.c_sma.process.send_signal(signal.SIGCONT)
        before = self.row(self.WEB)['pulled']
        until = time.monotonic() + self.TTL + self.GRACE
        while time.monotonic() < until:
            self.assertTrue({('WEB', self.WEB), ('VRS', self.VRS)} <= set(self.held()))
            time.sleep(0.02)
        self.assertGreater(self.row(self.WEB)['pulled'], before)
        self.assertEqual(self.audit('SOURCE_FAILED'), [])

    def test_a_reload_loses_nothing(self):
        """Entries that stay go on; one that is taken out is not asked, one that comes is."""
        before = self.row(self.WEB)['pulled']

        def reload(*entries):
            pathlib.Path(self.site_file).write_text(self.c_sma_text(lines=(self.pull(*entries),)))
            return self.c_sma.command('reload')

        self.assertIn('c_sma.pull: changed', reload(self.grpc()))
        self.assertEqual(self.row(self.VRS)['by'], None)
        await_true('STALE', lambda: self.source(self.VRS) == 'STALE', self.TTL + 5)
        reload(self.grpc(), self.http())
        await_true('HEALTHY', lambda: self.source(self.VRS) == 'HEALTHY')
        self.assertGreater(self.row(self.WEB)['pulled'], before)
        self.assertEqual(self.source(self.WEB), 'HEALTHY')
        self.assertEqual([line for line in self.audit('SOURCE_FAILED') if line['what'] == self.WEB], [])

    def test_a_revoked_sci_is_withdrawn(self):
        """CSMA-137: with its next question, not after its TTL."""
        pki = self.pki
        self.sci.kill()                     # all of them are this one's
        pki.run('sci', 'leaving', f'WEB={self.WEB}', f'VRS={self.VRS}')
        file = pathlib.Path(self.dataplane.site)
        text = file.read_text()
        self.addCleanup(file.write_text, text)
        file.write_text(text.replace('/site.', '/leaving.'))
        self.start_sci('control2')
        await_true('it is back', lambda: self.row(self.WEB)['identity'] == 'CN=leaving' and
                   self.source(self.WEB) == 'HEALTHY', 20)
        pki.run('revoke', 'leaving')
        self.await_audit('REVOKED', '')
        self.await_fault(self.VRS, 'certificate_revoked: CN=leaving')
        self.assertNotIn(('WEB', self.WEB), self.held())


class WhoAsks(PullCase):
    @classmethod
    def prepare(cls):
        super().prepare()
        cls.others = Pki(f'{cls.folder}/other-pki')
        cls.others.run('c-sma', 'edge-1')

    def setUp(self):
        super().setUp()
        self.start_sci()

    def ask(self, certificate=None, pki=None, path=None):
        """HTTPS of Python's from the C-SMA's namespace: (status, body), or the error's text."""
        pki, path = pki or self.pki, path or f'/v1/report/{self.WEB}'
        script = (
            'import ssl, sys, urllib.request as u, urllib.error\n'
            f'c = ssl.create_default_context(cafile={self.pki.file("ca.pem")!r})\n'
            'c.check_hostname = False\n' +
            (f'c.load_cert_chain({pki.file(certificate + ".pem")!r}, {pki.file(certificate + ".key")!r})\n'
             if certificate else '') +
            'try:\n'
            f'    r = u.urlopen("https://{self.at["sci"]}:7446{path}", context=c, timeout=9)\n'
            '    print(r.status, len(r.read()))\n'
            'except urllib.error.HTTPError as e:\n'
            '    print(e.code, e.read().decode())\n'
            'except OSError as e:\n'
            '    print("error", e)\n')
        return self.net.run('c-sma', sys.executable, '-c', script).stdout

    def test_only_the_c_sma_that_may(self):
        """CSMA-33, 131, 132, 186: by name in the SCI's log, and nothing is said."""
        self.assertRegex(self.ask('edge-1'), r'^200 [1-9]')
        for certificate, pki, reason in ((None, None, 'no_certificate'), ('cps', None, 'wrong_name'),
                                         ('edge-2', None, 'wrong_name'), ('web', None, 'wrong_name'),
                                         ('edge-1', self.others, 'unknown_ca')):
            seen = self.sci.log_text().count(f'reason={reason}')
            self.assertRegex(self.ask(certificate, pki), '^error')
            await_true(reason, lambda: self.sci.log_text().count(f'reason={reason}') > seen)
        self.assertRegex(self.ask('edge-1'), r'^200 [1-9]')

    def test_what_is_not_there(self):
        self.assertRegex(self.ask('edge-1', path='/v1/report/1.2.3.4:5'), '^404 no such SCI')
        self.assertRegex(self.ask('edge-1', path='/metrics'), '^404 expected /v1/report/CSCI-ID')
        self.assertRegex(self.ask('edge-1', path='/v1/report/192.0.2.21%3A80'), '^200')


class OddScis(PullCase):
    """The C-SMA asks WEB of the real site, which stands for all tests, and VRS of somebody else."""
    certificates = (*PullCase.certificates, ('sci', 'other', 'VRS=192.0.2.66:80'),
                    ('sci', 'service', f'WEB={CSmaAlone.VRS}'))
    scis_of_site, certificate = SCIS[:1], 'web'

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        Control(cls.net, cls.folder_of_sci, cls.dataplane.site)

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.others = Pki(f'{cls.folder}/other-pki')
        cls.others.run('sci', 'vrs', f'VRS={cls.VRS}')

    def serve(self, how='good', certificate='vrs', pki=None, csci_id=None, cs_id='VRS', timeout=2):
        pki = pki or self.pki
        self.asked = pathlib.Path(self.here, 'asked')
        with self.asked.open('w') as out:
            odd = self.net.start('far', sys.executable, HERE / 'odd_sci.py', self.at['far'], 7446,
                                 self.pki.file('ca.pem'), pki.file(certificate + '.pem'),
                                 pki.file(certificate + '.key'), csci_id or self.VRS, cs_id, how, stdout=out)
        self.addCleanup(self.net.stop, odd, signal.SIGKILL)
        self.start_c_sma(lines=(self.pull(self.grpc(), self.http('far', timeout=timeout)),), c_ps=())
        self.await_advertised('WEB', self.WEB, 100)

    def await_advertised(self, cs_id, csci_id, gas):
        await_true(f'GAS {gas} of {csci_id} is advertised',
                   lambda: self.versions().get((cs_id, csci_id), (0, 0, 'none'))[2] == gas, 15)

    def assert_nothing_came_of_it(self):
        self.assertIsNone(self.source(self.VRS))
        self.assertNotIn(('VRS', self.VRS), self.versions())
        self.assertEqual(self.source(self.WEB), 'HEALTHY')
        self.assertGreater(self.row(self.WEB)['pulled'], 0)
        self.assertEqual(self.row(self.WEB)['pull_failed'], 0)

    def fails(self, words, seconds=15, **kwargs):
        self.serve(**kwargs)
        self.await_fault(self.VRS, words, seconds)
        self.assert_nothing_came_of_it()
        lines = [line for line in self.c_sma.log_text().splitlines() if 'SCI does not answer' in line and words in line]
        self.assertEqual(len(lines), 1, lines)  # of many questions

    def test_good(self):
        """That what follows is refused for its reason alone."""
        self.serve()
        self.await_advertised('VRS', self.VRS, 50)

    def test_compressed(self):
        """Never inflated, whatever it would become."""
        for how in ('gzip', 'deflate', 'transfer'):
            with self.subTest(how):
                self.fails('the answer is compressed', how=how)
                self.doCleanups()
                self.setUp()

    def test_large(self):
        self.fails('body above 4194304 bytes', how='large')

    def test_slow(self):
        """A byte a second does not prolong its time, and holds up nobody."""
        self.fails('Timeout was reached', how='drip')

    def test_mute(self):
        self.fails('Timeout was reached', how='mute')

    def test_redirected(self):
        self.fails('status 302', how='redirect')
        self.assertNotIn('/good', self.asked.read_text())

    def test_garbage(self):
        self.fails('the answer is no margay.v1.Report', how='garbage')
        self.await_audit('REFUSED', 'UNREADABLE')

    def test_an_error_says_why(self):
        self.fails('status 503: tired', how='status')

    def test_another_scis_report(self):
        self.fails('the answer is of another SCI, 192.0.2.66:80', csci_id='192.0.2.66:80')

    def test_a_certificate_of_another_ca(self):
        """CSMA-131, 186."""
        self.fails('unknown_ca', pki=self.others)
        self.assertEqual(self.asked.read_text(), '')

    def test_a_c_ps_is_no_sci(self):
        """CSMA-33."""
        self.fails('wrong_name', certificate='cps')
        self.assertEqual(self.asked.read_text(), '')

    def test_a_certificate_that_does_not_name_it(self):
        """D-16, CSMA-187: judged, refused and audited as a report that is pushed."""
        for certificate in ('other', 'service'):
            with self.subTest(certificate):
                self.serve(certificate=certificate)
                self.await_audit('REFUSED', 'NOT_IN_CERTIFICATE')
                self.assert_nothing_came_of_it()
                self.doCleanups()
                self.setUp()

    def test_another_service(self):
        self.serve(cs_id='WEB')
        self.await_audit('REFUSED', 'WRONG_CS_ID')
        self.assert_nothing_came_of_it()


class Hybrid(PullCase):
    """CSMA-31: it pushes, every 30 s; the C-SMA, whose TTL is shorter, asks when it is STALE."""
    certificate = 'web'

    @classmethod
    def prepare(cls):
        super().prepare()
        to = f'reports_to: {{address: "{cls.at["c-sma"]}:7443", identity: edge-1}}'
        cls.scis_of_site = (Sci(address='192.0.2.21', limits=(40, 60), extra=(*HEALTH[:-1], REPORT, to)),)

    def test_pulled_on_demand(self):
        self.cps = self.start_cps()
        self.start_c_sma(lines=(self.pull(self.grpc(every=0)),))
        self.start_sci()
        self.await_held('WEB', self.WEB, 100)
        await_true('pulled', lambda: self.row(self.WEB)['pulled'] >= 2, 20)
        self.assertEqual(self.row(self.WEB)['by'], 'stream, grpc pull')
        self.assertEqual(self.audit('SOURCE_FAILED') + self.audit('REFUSED') + self.audit('PULL_FAILED'), [])
        self.assertEqual(self.held()[('WEB', self.WEB)][2], 100)
        self.assertEqual(self.sci.show('reports-to')['reports_to'][0]['verdict'], 'ACCEPTED')
