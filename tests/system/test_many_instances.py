# SPDX-License-Identifier: Apache-2.0
"""1,000 instances at checks of one second, one in a hundred of them hanging: nobody else's check slips."""
import collections
import os
import pathlib
import shutil
import sys
import tempfile
import time
import unittest

import net
import site_file
from control import Control
from peers import NGINX, SLOW_PORT
from site_file import Sci

SCIS, INSTANCES, HANGING = 20, 50, 10
SECONDS = 12
HEALTH = ('health:', '  confirm_interval: 1s',
          '  liveness: {http: "http://{address}:{port}/", interval: 1s, timeout: 500ms}')

# Takes connections and never answers.
HANG = '''
import socket
with socket.create_server(("", 9000), backlog=4096) as server:
    print("ready", flush=True)
    kept = []
    while True:
        kept.append(server.accept())
'''


class ManyInstances(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest('needs root for network namespaces')
        cls.folder = tempfile.mkdtemp(prefix='margay-')
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.net = net.Net(0)
        cls.addClassCleanup(cls.net.close)
        cls.net.add('sci')
        cls.net.ip('sci', 'route', 'add', 'local', '10.1.0.0/16', 'dev', 'lo')

    def serve(self):
        config, self.log = f'{self.folder}/nginx.conf', f'{self.folder}/access'
        text = NGINX.format(folder=self.folder, name='all', log=self.log, slow_port=SLOW_PORT)
        with open(config, 'w') as f:
            f.write(text.replace('$remote_addr $remote_port $connections_active $status', '$server_addr $msec'))
        self.net.start('sci', 'nginx', '-c', config, '-e', f'{self.folder}/error')
        hang = self.net.start('sci', sys.executable, '-c', HANG, stdout=-1)
        hang.stdout.readline()
        self.addCleanup(hang.stdout.close)

    def site(self):
        scis = [Sci(port=1000 + n, extra=HEALTH, limits=()) for n in range(SCIS)]
        lines = []
        hanging = 0
        for line in site_file.text(f'{self.folder}/cli.sock', scis, control=f'{self.folder}/none.sock').splitlines():
            lines.append(line.replace('10.1.0.2/24', '10.1.0.2/16'))
            if line == '    instances:':
                for n in range(INSTANCES):
                    number = len(scis) * n + 300 + sum(l == '    instances:' for l in lines)
                    hangs = n == 0 and hanging < HANGING
                    hanging += hangs
                    lines.append(f'      - {{id: i{n}, address: 10.1.{number // 250}.{number % 250 + 1}, '
                                 f'port: {9000 if hangs else 8080}, max_sessions: 10}}')
        return '\n'.join(lines) + '\n' + Control.section(self.folder)

    def test_the_hanging_hold_up_nobody(self):
        self.serve()
        site = f'{self.folder}/site.yaml'
        pathlib.Path(site).write_text(self.site())
        control = Control(self.net, self.folder, site)
        self.addCleanup(control.kill)
        time.sleep(SECONDS)
        ticks = pathlib.Path(f'/proc/{control.process.pid}/stat').read_text().rpartition(')')[2].split()
        status = pathlib.Path(f'/proc/{control.process.pid}/status').read_text()
        cpu = (int(ticks[11]) + int(ticks[12])) / os.sysconf('SC_CLK_TCK')
        rss = next(int(line.split()[1]) for line in status.splitlines() if line.startswith('VmRSS'))
        control.stop()
        asked = collections.defaultdict(list)
        for line in pathlib.Path(self.log).read_text().splitlines():
            address, when = line.split()
            asked[address].append(float(when))
        gaps = [b - a for times in asked.values() for a, b in zip(times, times[1:])]
        print(f'        {len(asked)} instances answered {sum(map(len, asked.values()))} checks; longest pause '
              f'{max(gaps):.2f} s; {cpu / SECONDS * 100:.1f} % of a core, {rss / 1024:.0f} MiB', flush=True)
        self.assertEqual(len(asked), SCIS * INSTANCES - HANGING)
        self.assertLess(max(gaps), 2.1)     # the interval, a tenth of jitter, and one interval more
        log = control.log_text()
        self.assertEqual(log.count('to=UNHEALTHY'), 0)  # there is no data plane, so failures tell nothing (D-23)
        self.assertEqual(log.count('to=HEALTHY'), SCIS * INSTANCES - HANGING)
