# SPDX-License-Identifier: Apache-2.0
"""A C-SMA (role c-sma) and a margay-cps on a management network, and SCIs that are no more than their reports."""
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time

import grpc_peer
from case import HERE, SystemCase, await_true
from control import Control
from cps import Cps
from pki import Pki


class Reporter:
    """An SCI by grpc_peer.py, on a stream of its own with the certificate of this name."""

    def __init__(self, case, certificate, csci_id, cs_id='WEB', pki=None):
        self.net, self.csci_id, self.cs_id = case.net, csci_id, cs_id
        self.epoch, self.sequence, self.gas = int(time.time() * 1000), 0, 0
        self.answers, self.last, self.going = queue.Queue(), None, False
        pki = pki or case.pki
        self.process = self.net.start('far', sys.executable, HERE / 'grpc_peer.py', case.at['c-sma'], 7443,
                                      case.pki.file('ca.pem'), pki.file(certificate + '.pem'),
                                      pki.file(certificate + '.key'), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        case.addCleanup(self.close)

    def _read(self):
        for line in self.process.stdout:
            answer = json.loads(line)
            if 'pull' not in answer:
                self.last = answer
                self.answers.put(answer)

    def send(self, message):
        try:
            self.process.stdin.write(message.hex() + '\n')
            self.process.stdin.flush()
        except (OSError, ValueError):
            pass                            # it has ended, and has said so

    def message(self, gas, **more):
        """The next report."""
        self.sequence += 1
        return grpc_peer.report(self.csci_id, self.cs_id, more.pop('epoch', self.epoch),
                                more.pop('sequence', self.sequence), gas, **more)

    def answer(self, seconds=15):
        """The C-SMA's next, or {'ended': why}."""
        return self.answers.get(timeout=seconds)

    def report(self, gas, **more):
        self.send(self.message(gas, **more))
        return self.answer()

    def keep(self, gas, interval=0.25):
        """Reports by itself from now on; `self.gas` may change."""
        self.gas, self.going = gas, True

        def go():
            while self.going:
                self.send(self.message(self.gas() if callable(self.gas) else self.gas))
                time.sleep(interval)

        threading.Thread(target=go, daemon=True).start()
        return self

    def close(self):
        self.going = False
        self.net.stop(self.process, signal.SIGKILL)
        self.reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except OSError:
                pass


class CSmaAlone(SystemCase):
    """Each test has a C-SMA of its own. Certificates, by name: `edge-1` the C-SMA's, `cps` the C-PS's, `web` and `vrs`
    those of the SCIs."""
    instances = 0
    WEB, VRS = '192.0.2.21:80', '192.0.2.22:80'
    CEILING = 100
    certificates = (('c-sma', 'edge-1'), ('c-ps', 'cps'), ('signing-key', 'k1'), ('sci', 'web', f'WEB={WEB}'),
                    ('sci', 'vrs', f'VRS={VRS}'))
    TTL, GRACE = 3, 2

    @classmethod
    def prepare(cls):
        cls.at = cls.net.manage('c-sma', 'cps', 'far', 'sci')
        cls.pki = Pki(f'{cls.folder}/pki')
        for words in cls.certificates:
            cls.pki.run(*words)

    def setUp(self):
        self.here = tempfile.mkdtemp(dir=self.folder)
        self.site_file = f'{self.here}/site.yaml'

    def c_sma_text(self, security=None, c_ps=(('cps', 'cps', 'WEB, VRS'),), identity='edge-1', accept=(),
                   lines=()):
        """`c_ps`: (identity, namespace, CS-IDs) of each. `accept`: further CSCI-IDs of WEB."""
        text = Control.section(self.here, role='c-sma') + (security or self.pki.section('edge-1', 'k1'))
        text += (f'c_sma:\n  identity: {identity}\n  listen: {self.at["c-sma"]}:7443\n  accept:\n'
                 f'    - {{csci_id: "{self.WEB}", cs_id: WEB, gas_ceiling: {self.CEILING}}}\n'
                 f'    - {{csci_id: "{self.VRS}", cs_id: VRS, gas_ceiling: {self.CEILING}}}\n' +
                 ''.join(f'    - {{csci_id: "{csci_id}", cs_id: WEB}}\n' for csci_id in accept) +
                 f'  cache: {{ttl: {{gas: {self.TTL}s}}, grace: {self.GRACE}s}}\n'
                 '  self_doubt: {hold: 2s}\n'
                 '  updates: {heartbeat: 2s, minimum_interval: 100ms, gas_change: 0%, valid_for: 20s, '
                 'backoff: {initial: 200ms, max: 1s}}\n' + ('  c_ps:\n' if c_ps else ''))
        for name, namespace, cs_ids in c_ps:
            text += (f'    - {{protocol: grpc, address: "{self.at[namespace]}:7444", identity: {name}, '
                     f'cs_ids: [{cs_ids}]}}\n')
        return text + ''.join(f'  {line}\n' for line in lines)

    def start_c_sma(self, name='c-sma', under=(), arguments=(), **kwargs):
        pathlib.Path(self.site_file).write_text(self.c_sma_text(**kwargs))
        self.c_sma = Control(self.net, self.here, self.site_file, name, under, namespace='c-sma', arguments=arguments)
        self.addCleanup(self.c_sma.kill)
        return self.c_sma

    def start_cps(self, cs_ids=('WEB', 'VRS'), keys=None, **kwargs):
        keys = keys or {'k1': self.pki.file('k1.sign.pub')}
        cps = Cps(self.net, self.here, self.pki, {'edge-1': (keys, cs_ids)},
                  f'{self.at[kwargs.get("namespace", "cps")]}:7444', **kwargs)
        self.addCleanup(cps.kill)
        return cps

    def start(self, **kwargs):
        """C-PS, C-SMA, and an SCI for WEB that reports on and on."""
        self.cps = self.start_cps()
        self.start_c_sma(**kwargs)
        self.web = Reporter(self, 'web', self.WEB).keep(60)
        self.await_held('WEB', self.WEB, 60)

    # What is seen

    def audit(self, kind='REFUSED', word=''):
        """Lines of the C-SMA's audit log whose detail begins so."""
        lines = pathlib.Path(f'{self.here}/state/audit.jsonl').read_text().splitlines()
        return [line for line in map(json.loads, lines) if line['kind'] == kind and line['detail'].startswith(word)]

    def await_audit(self, kind, word, seconds=15):
        await_true(f'{kind} {word} in the audit log', lambda: self.audit(kind, word), seconds)
        return self.audit(kind, word)[-1]

    def source(self, csci_id, column='state'):
        return next(r[column] for r in self.c_sma.show('sources')['sources'] if r['csci_id'] == csci_id)

    def reasons(self):
        return {r['reason']: r['reports'] for r in self.c_sma.show('updates')['reasons']}

    def c_ps(self, identity='cps'):
        return next(r for r in self.c_sma.show('c-ps')['c_ps'] if r['c_ps'] == identity)

    def held(self, cps=None):
        """At the C-PS: {(CS-ID, CSCI-ID): (epoch, commit, GAS)}."""
        return {(r['cs_id'], r['csci_id']): (r['epoch'], r['commit'], r['gas']) for r in (cps or self.cps).rows()}

    def versions(self):
        """The same of what the C-SMA advertises."""
        return {(r['cs_id'], r['csci_id']): (r['epoch'], r['commit'], r['gas'])
                for r in self.c_sma.show('site')['rows']}

    def await_held(self, cs_id, csci_id, gas, seconds=15):
        await_true(f'GAS {gas} of {csci_id or cs_id} at the C-PS',
                   lambda: self.held().get((cs_id, csci_id), (0, 0, 'none'))[2] == gas, seconds)

    def await_equal(self, seconds=20):
        await_true('the C-PS has what the C-SMA advertises', lambda: self.held() and self.held() == self.versions(),
                   seconds)

    def assert_web_stands(self):
        """Whatever others did."""
        self.await_held('WEB', self.WEB, 60, 5)
        self.assertEqual(self.source(self.WEB), 'HEALTHY')
        self.assertEqual(self.web.last['verdict'], 'ACCEPTED')


def descriptors(process):
    return len(os.listdir(f'/proc/{process.pid}/fd'))


def resident(process):
    """VmRSS in KiB."""
    for line in pathlib.Path(f'/proc/{process.pid}/status').read_text().splitlines():
        if line.startswith('VmRSS:'):
            return int(line.split()[1])
    raise RuntimeError(f'process {process.pid} has ended')
