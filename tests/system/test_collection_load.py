# SPDX-License-Identifier: Apache-2.0
"""Many SCIs on many TLS connections, all reporting as fast as they are answered: each report is answered, what is
urgent gets through, and every row is at the C-PS. Beside it gRPC alone does the same. `MARGAY_LOAD=2000x50x10` is the
size that bench/README.md tells of: connections, streams on each, seconds. Prints its figures."""
import os
import re
import statistics
import subprocess
import time

from c_sma_case import CSmaAlone, Reporter, resident
from case import await_true
from dataplane import BUILD
from grpc_peer import HEALTH

CONNECTIONS, STREAMS, SECONDS = map(int, os.environ.get('MARGAY_LOAD', '20x50x2').split('x'))
TRIGGERS = 10


def csci_id(connection, stream):
    return f'10.9.{stream // 250}.{stream % 250}:{1 + connection}'


class CollectionLoad(CSmaAlone):
    alone = True
    TTL, GRACE = 600, 10
    urgent = [f'10.8.0.{n}:80' for n in range(TRIGGERS)]

    @classmethod
    def prepare(cls):
        super().prepare()
        cls.pki.run('sci', 'urgent', *(f'URGENT={csci_id}' for csci_id in cls.urgent))

    def c_sma_text(self, **more):
        accepted = ''.join(f'    - {{csci_id: "{csci_id(c, s)}", cs_id: LOAD}}\n'
                           for c in range(CONNECTIONS) for s in range(STREAMS))
        accepted += ''.join(f'    - {{csci_id: "{csci_id}", cs_id: URGENT}}\n' for csci_id in self.urgent)
        text = super().c_sma_text(c_ps=(('cps', 'cps', 'URGENT, LOAD'),), **more)
        text = text.replace('heartbeat: 2s', 'heartbeat: 60s').replace('valid_for: 20s', 'valid_for: 180s')
        return text.replace('  accept:\n', '  accept:\n' + accepted).replace(
            'cache: {', f'cache: {{max_entries: {CONNECTIONS * STREAMS + TRIGGERS}, ')

    def load(self, server):
        """All streams stand and none is busy; go() makes them."""
        process = self.net.start('far', BUILD / 'bench' / 'collection_load', '--server', server,
                                 '--pki', self.pki.folder, '--connections', CONNECTIONS, '--streams', STREAMS,
                                 '--seconds', SECONDS,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for pipe in (process.stdin, process.stdout):
            self.addCleanup(pipe.close)
        connected = process.stdout.readline()
        self.assertRegex(connected, r'^connected [\d.e+-]+$')
        return process, float(connected.split()[1])

    def go(self, process):
        process.stdin.write('\n')
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), 'busy\n')

    def result(self, process):
        """Reports that were answered, and in how many seconds."""
        line = process.stdout.readline()
        answered, lasted, bad = re.fullmatch(r'answered (\d+) in ([\d.]+) not accepted (\d+)\n', line).groups()
        self.assertEqual(int(bad), 0)
        self.assertGreater(int(answered), 0)
        return int(answered), float(lasted)

    def cost(self, process):
        """Seconds of a core so far."""
        with open(f'/proc/{process.pid}/stat') as f:
            user, system = f.read().rpartition(')')[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf('SC_CLK_TCK')

    def peer(self):
        """gRPC alone: what the load finds there."""
        server = self.net.start('sci', BUILD / 'bench' / 'peer_collection', f'{self.at["sci"]}:7443',
                                self.pki.file('ca.pem'), self.pki.file('edge-1.pem'), self.pki.file('edge-1.key'),
                                stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.assertEqual(server.stdout.readline(), 'listens\n')
        return self.measure(server, f'{self.at["sci"]}:7443')

    def measure(self, server, address, meanwhile=lambda: None):
        empty, spent = resident(server), self.cost(server)
        process, connected = self.load(address)
        figures = {'connected': connected, 'handshake': (self.cost(server) - spent) / CONNECTIONS * 1000,
                   'stream': (resident(server) - empty) / (CONNECTIONS * STREAMS)}
        self.go(process)
        spent = self.cost(server)
        meanwhile()
        answered, lasted = self.result(process)
        figures |= {'rate': answered / lasted, 'a core': answered / (self.cost(server) - spent)}
        self.assertEqual(process.wait(120), 0)
        return figures

    def trigger(self):
        """Milliseconds from an SCI's report that all is down to the C-PS's table."""
        for sci in self.scis:
            began = time.monotonic()
            sci.send(sci.message(0, health=(0, 0, 1, 0), trigger=HEALTH))
            await_true('the C-PS knows', lambda: self.gas(sci) == 0, 30)
            self.delays.append(1000 * (time.monotonic() - began))

    def gas(self, sci):
        rows = self.cps.show('table', 'cs-id', 'URGENT')['rows']
        return next((row['gas'] for row in rows if row['csci_id'] == sci.csci_id), None)

    def test_everyone_is_answered_and_what_is_urgent_gets_through(self):
        """CSMA-32, CSMA-33, CSMA-152, CSMA-160, CSMA-178"""
        bare = self.peer()
        self.cps = self.start_cps(cs_ids=('URGENT', 'LOAD'))
        empty = resident(self.cps.process)
        self.start_c_sma()
        self.scis = [Reporter(self, 'urgent', csci_id, 'URGENT') for csci_id in self.urgent]
        for sci in self.scis:
            self.assertEqual(sci.report(60)['verdict'], 'ACCEPTED')
        await_true('all are at the C-PS', lambda: all(self.gas(sci) == 60 for sci in self.scis), 30)
        self.delays = []
        ours = self.measure(self.c_sma.process, f'{self.at["c-sma"]}:7443', self.trigger)
        for what, unit in (('connected', 's until all streams stand'), ('handshake', 'ms of a core a connection'),
                           ('stream', 'KiB a stream'), ('rate', 'reports/s'), ('a core', 'reports/s a core')):
            print(f'{unit:28}{ours[what]:12.2f}   gRPC alone {bare[what]:12.2f}   ratio {ours[what] / bare[what]:.2f}')
        print(f'urgent, ms until the C-PS has it, median of {TRIGGERS}: {statistics.median(self.delays):.1f}, '
              f'slowest {max(self.delays):.1f}')
        count = CONNECTIONS * STREAMS
        print(f'full sync of {count} rows: {self.full_sync():.2f} s')
        print(f'a row at the C-PS: {(resident(self.cps.process) - empty) / count:.2f} KiB')
        began = time.monotonic()
        rows = self.cps.show('table', 'cs-id', 'LOAD')['rows']
        print(f'show table --json of {len(rows)} rows: {time.monotonic() - began:.2f} s')
        self.assertEqual(len(rows), count + 1)
        self.assertEqual({row['gas'] for row in rows if row['csci_id'] is not None}, {100})

    def full_sync(self):
        """Seconds from the C-PS's question (CSMA-160) to the snapshot's end."""
        def snapshots():
            return self.cps.show('sessions')['c_smas'][0]['snapshots']

        before, began = snapshots(), time.monotonic()
        self.assertEqual(self.cps.run('sync', 'edge-1').returncode, 0)
        await_true('a snapshot is whole', lambda: snapshots() > before, 120)
        return time.monotonic() - began
