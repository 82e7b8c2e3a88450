# SPDX-License-Identifier: Apache-2.0
"""A running margay-control in the SCI's namespace: its CLI, its log and its reports."""
import json
import pathlib
import signal
import subprocess
import time

from dataplane import BUILD, Commands

PROGRAM = BUILD / 'control' / 'margay-control'


class Control(Commands):
    """Starts with a site file that is there, and waits until it takes commands. `under`: words before the program's
    name, such as `env` and what it sets; `arguments`: more of its own."""

    def __init__(self, net, folder, site, name='control', under=(), namespace='sci', arguments=()):
        self.net, self.site = net, site
        self.socket, self.reports_file = f'{folder}/control.sock', f'{folder}/reports'
        self.log = f'{folder}/{name}.log'
        with open(self.log, 'w') as log:
            self.process = net.start(namespace, *under, PROGRAM, '--config', site, *arguments, stdin=subprocess.DEVNULL,
                                     stdout=log, stderr=log)
        for _ in range(300):
            if self.process.poll() is not None:
                raise RuntimeError(f'margay-control ended with status {self.process.returncode}:\n{self.log_text()}')
            if self.answers():
                return
            time.sleep(0.05)
        raise RuntimeError(f'margay-control takes no commands:\n{self.log_text()}')

    @staticmethod
    def section(folder, state='state', role='sci'):
        """What the site file says of it."""
        return (f'state_directory: {folder}/{state}\n'
                f'control:\n  role: {role}\n  cli: {folder}/control.sock\n  reports: {folder}/reports\n')

    def log_text(self):
        return pathlib.Path(self.log).read_text()

    def reports(self):
        """All that went out so far, by this process and those before it; of a line that is being written, nothing."""
        whole, _, _ = pathlib.Path(self.reports_file).read_text().rpartition('\n')
        return [json.loads(line) for line in whole.splitlines()]

    def kill(self):
        self.net.stop(self.process, signal.SIGKILL)

    def stop(self):
        return self.net.stop(self.process, signal.SIGTERM, timeout=15)
