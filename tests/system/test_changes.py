# SPDX-License-Identifier: Apache-2.0
"""A thousand changes of the shared table a second under traffic. MARGAY_CHANGES_SECONDS makes it longer and prints the
figures of bench/README.md."""
import json
import os
import pathlib
import resource
import statistics

import site_file
from case import SystemCase, await_true
from dataplane import DataPlane
from peers import RST, Capture, client_of
from site_file import Sci
from table_writer import Control

SECONDS = float(os.environ.get('MARGAY_CHANGES_SECONDS', 8))
RATE = 1000
WARM_UP = 3
SCI = Sci()
OTHER = Sci(port=81, instance_port=8081, limits=(100,) * 60)    # nobody asks for it
# A change copies the piece of 64 instances that it touches (dataplane/core/shared_array.h), 128 bytes each at least: a
# thirtieth of that, kept for each change, would be a leak that shows; less, allocators' arenas also grow by.
LEAK = 64 * 128 / 30


def rss(pid):
    return int(pathlib.Path(f'/proc/{pid}/statm').read_text().split()[1]) * resource.getpagesize()


class Changes(SystemCase):
    alone = True

    def setUp(self):
        self.control = f'{self.folder}/run/dataplane.sock'
        text = site_file.text(f'{self.folder}/cli.sock', (SCI, OTHER), control=self.control)
        self.dataplane = DataPlane(self.net, self.folder, text)
        self.addCleanup(self.dataplane.stop)

    def last_packets(self, told, packets):
        """For each verdict the time from its commit to the last packet of a client to the instance. None went there
        after the ack: what ends a session there is a reset of ours."""
        times = []
        for verdict in told['verdicts']:
            address = dict(zip(self.net.instances, ('10.1.0.11', '10.1.0.12', '10.1.0.13')))[verdict['id']]
            there = [p.time for p in packets if p.destination == address and client_of(p)[1] and not p.flags & RST
                     and verdict['committed'] < p.time < verdict['ended']]
            self.assertEqual([t - verdict['acked'] for t in there if t > verdict['acked']], [], verdict)
            times += [max(there) - verdict['committed']] if there else []
        return times

    def test_a_thousand_a_second(self):
        control = Control(self)
        self.addCleanup(control.end)
        control.commit()
        # Where the site begins: stamped as it leaves the data plane's port.
        capture = Capture(self.net, 'site', 'tcp dst port 8080', interface='sci', folder=self.folder)
        load = self.start_load(SCI, '--seconds', WARM_UP + SECONDS + 2)
        warm_up = control.ask('storm', WARM_UP, RATE)
        before = rss(self.dataplane.process.pid)
        told = control.ask('storm', SECONDS, RATE)
        packets = capture.stop()
        grown = rss(self.dataplane.process.pid) - before
        result = self.result(load)
        for storm in (warm_up, told):
            self.assertEqual((storm['refused'], storm['gone'], storm['acked']), (0, False, True))
        self.assertLess(grown, LEAK * told['changes'])
        times = self.last_packets(told, packets)
        self.assertGreater(len(times), SECONDS / 4)
        self.assertGreater(result['ok'], 50 * SECONDS)
        self.assertEqual(set(result['failures']) - {'ECONNRESET', 'ECONNREFUSED'}, set(), 'who is cut off is told')
        await_true('no slot is held', lambda: self.active(SCI) == 0)
        self.assertEqual(self.dataplane.audit(), (True, 0))
        if 'MARGAY_CHANGES_SECONDS' in os.environ:
            acks = [v['acked'] - v['committed'] for v in told['verdicts']]
            print(json.dumps({
                'changes': told['changes'], 'seconds': told['seconds'], 'grown': grown, 'ok': result['ok'],
                'failures': result['failures'], 'packets': len(packets), 'verdicts': len(times),
                'last packet ms': [round(1000 * f(times), 3) for f in (min, statistics.median, max)],
                'ack ms': [round(1000 * f(acks), 3) for f in (min, statistics.median, max)]}))
