# SPDX-License-Identifier: Apache-2.0
"""What the demo's parts are made of: loads, captures, and what the data plane tells of its slots."""
import contextlib
import json
import pathlib
import subprocess
import sys
import time

from peers import Capture

HERE = pathlib.Path(__file__).resolve().parent
SETTLE = 0.2            # seconds that what is on its way from the workers to the instances may take
LAST_TIMER = 30         # seconds by which every timer of the site files has gone off
PATIENCE = 60           # seconds until a connection or query counts as never answered: a machine may be busy


def why(result):
    """What failed and how often, for the end of a line; nothing when nothing failed."""
    return f' {result["failures"]}' if result['failures'] else ''


def await_(condition, seconds):
    """What the condition gives as soon as that is something, or at the end of the time."""
    until = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < until:
        time.sleep(0.05)
    return found


class Loads:
    """Loads from the client of `self.net`."""

    def load(self, sci, *words):
        return self.net.start('client', sys.executable, HERE / 'load.py', sci.address, sci.port, '--timeout', PATIENCE,
                              *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def finish(self, load):
        line = load.stdout.readline()
        self.let_go(load)
        return json.loads(line)

    def let_go(self, load):
        load.stdin.close()
        load.wait(PATIENCE)
        self.net.processes.remove(load)


class Part(Loads):
    """Some steps of the demo, with a data plane of their own in the demo's network."""

    def __init__(self, demo):
        self.net, self.folder, self.memory, self.instances = demo.net, demo.folder, demo.memory, demo.instances
        self.tell, self.step = demo.tell, demo.step
        self.dataplane = None

    def await_slots(self, sci=None):
        """How many slots are held once none is, or when every timer should have gone off."""
        until = time.monotonic() + LAST_TIMER
        while self.active(sci) and time.monotonic() < until:
            time.sleep(0.1)
        return self.active(sci)

    @contextlib.contextmanager
    def captures(self, expression='tcp'):
        """tcpdump beside every instance; the dictionary is filled at the end."""
        running = {name: Capture(self.net, name, expression, folder=self.folder) for name in self.net.instances}
        packets = {}
        yield packets
        packets.update((name, capture.stop()) for name, capture in running.items())

    def set_all(self, sci, *words):
        for name in self.net.instances:
            self.dataplane.command('set', 'instance', sci.csci_id, name, *words)

    def worker_total(self, key):
        return sum(row[key] for row in self.dataplane.show('workers')['workers'])

    def slots(self):
        return self.dataplane.show('slots')['slots']

    def active(self, sci=None):
        return sum(row['active'] for row in self.slots() if sci is None or row['csci_id'] == sci.csci_id)
