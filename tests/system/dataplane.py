# SPDX-License-Identifier: Apache-2.0
"""A running margay-dataplane in the SCI's namespace, and its CLI."""
import json
import os
import pathlib
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('MARGAY_BUILD', ROOT / 'build'))
PROGRAM = BUILD / 'dataplane' / 'margay-dataplane'
CLI = BUILD / 'common' / 'cli' / 'margay-cli'


class CommandFailed(Exception):
    pass


class Commands:
    """`margay-cli`, one shot. Its socket, `self.socket`, is found by path, in whatever network namespace."""

    def run(self, *words, **kwargs):
        return subprocess.run([CLI, '--socket', self.socket, *map(str, words)], capture_output=True, text=True,
                              timeout=30, **kwargs)

    def command(self, *words):
        done = self.run(*words)
        if done.returncode != 0:
            raise CommandFailed(f'{" ".join(map(str, words))}: {done.stderr or done.stdout}')
        return done.stdout

    def show(self, *words):
        return json.loads(self.command('show', *words, '--json'))


class DataPlane(Commands):
    """Starts with a site file and waits until it takes commands. `under`: words before the program's name."""

    def __init__(self, net, folder, site_text, *eal_args, namespace='sci', name='dataplane', under=()):
        self.net, self.namespace = net, namespace
        self.site = f'{folder}/{name}.yaml'
        self.log = f'{folder}/{name}.log'
        self.socket = next(line.split()[1] for line in site_text.splitlines() if line.startswith('  cli:'))
        with open(self.site, 'w') as f:
            f.write(site_text)
        with open(self.log, 'w') as log:
            self.process = net.start(namespace, *under, PROGRAM, '--config', self.site,
                                     *(['--', *eal_args] if eal_args else []),
                                     stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._await_cli()

    def _await_cli(self):
        for _ in range(300):
            if self.process.poll() is not None:
                raise RuntimeError(f'margay-dataplane ended with status {self.process.returncode}:\n{self.log_text()}')
            if self.run('version').returncode == 0:
                return
            time.sleep(0.05)
        raise RuntimeError(f'margay-dataplane takes no commands:\n{self.log_text()}')

    def log_text(self):
        return pathlib.Path(self.log).read_text()

    def settle(self, seconds=30):
        """Waits until every worker has begun and ended a poll: what commands changed before holds everywhere then."""
        before = [row['polls'] for row in self.show('workers')['workers']]
        until = time.monotonic() + seconds
        while any(row['polls'] < polls + 2 for row, polls in zip(self.show('workers')['workers'], before)):
            if time.monotonic() > until:
                raise RuntimeError(f'after {seconds} s a worker has still not polled')
            time.sleep(0.01)

    def audit(self):
        """`show slots audit`: (whether it judged every instance, the sum of all differences)."""
        audit = self.show('slots', 'audit')
        return audit['complete'] and not any(row['moved'] for row in audit['instances']), audit['differences']

    def stop(self):
        """Asks it to end and returns its exit status."""
        return self.net.stop(self.process, signal.SIGTERM, timeout=15)
