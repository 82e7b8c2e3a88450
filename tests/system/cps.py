# SPDX-License-Identifier: Apache-2.0
"""A running margay-cps, and its CLI."""
import pathlib
import signal
import subprocess
import time

from dataplane import BUILD, Commands

PROGRAM = BUILD / 'control' / 'cps' / 'margay-cps'


class Cps(Commands):
    """Starts with a site file of its own, and waits until it takes commands. `c_smas`: {identity: (keys, cs_ids)} with
    keys {id: file}."""

    def __init__(self, net, folder, pki, c_smas, listen, identity='cps', namespace='cps', name='cps', state='none',
                 extra='', under=(), security=None):
        self.net, self.namespace, self.under = net, namespace, under
        self.socket, self.log = f'{folder}/{name}.sock', f'{folder}/{name}.log'
        self.site = f'{folder}/{name}.yaml'
        text = (security or pki.section(identity)) + (
            f'cps:\n  listen: "{listen}"\n  cli: {self.socket}\n  state: {state}\n{extra}  c_smas:\n')
        for c_sma, (keys, cs_ids) in c_smas.items():
            listed = ', '.join(f'{key}: {file}' for key, file in keys.items())
            text += f'    - {{identity: {c_sma}, keys: {{{listed}}}, cs_ids: [{", ".join(cs_ids)}]}}\n'
        pathlib.Path(self.site).write_text(text)
        self.start()

    def start(self):
        with open(self.log, 'a') as log:
            self.process = self.net.start(self.namespace, *self.under, PROGRAM, '--config', self.site,
                                          stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for _ in range(300):
            if self.process.poll() is not None:
                raise RuntimeError(f'margay-cps ended with status {self.process.returncode}:\n{self.log_text()}')
            if self.answers():
                return
            time.sleep(0.05)
        raise RuntimeError(f'margay-cps takes no commands:\n{self.log_text()}')

    def log_text(self):
        return pathlib.Path(self.log).read_text()

    def rows(self, **wanted):
        """`show table`, those rows whose columns are as wanted."""
        return [row for row in self.show('table')['rows'] if all(row[k] == v for k, v in wanted.items())]

    def kill(self):
        self.net.stop(self.process, signal.SIGKILL)

    def stop(self):
        return self.net.stop(self.process, signal.SIGTERM, timeout=15)
