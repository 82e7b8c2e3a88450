# SPDX-License-Identifier: Apache-2.0
"""A running margay-dataplane in the SCI's namespace, and its CLI."""
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get('MARGAY_BUILD', ROOT / 'build'))
PROGRAM = BUILD / 'dataplane' / 'margay-dataplane'
CLI = BUILD / 'common' / 'cli' / 'margay-cli'


class CommandFailed(Exception):
    pass


class Commands:
    """A daemon's commands. Its socket, `self.socket`, is found by path, in whatever network namespace."""

    def run(self, *words, **kwargs):
        """`margay-cli`, one shot."""
        return subprocess.run([CLI, '--socket', self.socket, *map(str, words)], capture_output=True, text=True,
                              timeout=30, **kwargs)

    def command(self, *words, as_json=False):
        """The answer's text, without a process for each question: tests ask again and again. No word has a space."""
        line = ' '.join(map(str, words))
        try:
            with socket.socket(socket.AF_UNIX) as daemon:
                daemon.settimeout(30)
                daemon.connect(str(self.socket))
                daemon.sendall(json.dumps({'line': line, 'json': as_json}).encode() + b'\n')
                text = ''
                for message in map(json.loads, daemon.makefile()):
                    if 'out' not in message:
                        break
                    text += message['out']
                else:
                    raise CommandFailed(f'{line}: the daemon closed the connection')
        except OSError as e:
            raise CommandFailed(f'{line}: {self.socket}: {e}') from e
        if 'error' in message:
            raise CommandFailed(f'{line}: {message["error"]}')
        return text

    def show(self, *words):
        return json.loads(self.command('show', *words, as_json=True))

    def answers(self):
        """Whether it takes commands yet."""
        try:
            return bool(self.command('version'))
        except CommandFailed:
            return False


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
            if self.answers():
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
