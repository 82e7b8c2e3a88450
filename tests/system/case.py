# SPDX-License-Identifier: Apache-2.0
"""What the system tests share: a network, its instances and a running data plane for each class of tests."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import net
import site_file
from dataplane import DataPlane
from net import Net
from peers import Instance

HERE = pathlib.Path(__file__).resolve().parent


def await_true(what, condition, seconds=10):
    """Waits until the condition holds; an error when it does not within the time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f'after {seconds} s still not: {what}')
        time.sleep(0.05)


class SystemCase(unittest.TestCase):
    """A class of tests sets `scis`, and `site` for what else the site file shall say."""
    scis = ()
    site = {}
    instances = 3
    dns = False

    @classmethod
    def setUpClass(cls):
        if os.geteuid() != 0:
            raise unittest.SkipTest('needs root for network namespaces')
        cls.folder = tempfile.mkdtemp(prefix='margay-')
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.net = Net(cls.instances)
        cls.addClassCleanup(cls.net.close)
        cls.servers = [Instance(cls.net, name, cls.folder) for name in cls.net.instances]
        if cls.dns:
            for server in cls.servers:
                server.start_dns()
        cls.prepare()
        if cls.scis:
            cls.dataplane = DataPlane(cls.net, cls.folder, cls.site_text())

    @classmethod
    def prepare(cls):
        """What must stand before the data plane starts."""

    @classmethod
    def site_text(cls, **changes):
        return site_file.text(f'{cls.folder}/cli.sock', cls.scis, **{**cls.site, **changes})

    # Load

    def start_load(self, sci, *words, namespace='client'):
        load = self.net.start(namespace, sys.executable, HERE / 'load.py', sci.address, sci.port, *words,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.finish, load)
        return load

    def result(self, load):
        """What the load has to say; a load that holds connections holds on until finish()."""
        return json.loads(load.stdout.readline())

    def finish(self, load):
        if load.stdin.closed:
            return
        load.stdin.close()
        load.wait(30)
        load.stdout.close()
        self.net.processes.remove(load)

    def finish_talk(self, load):
        """The end of a load that talks, and what it tells by instance."""
        load.stdin.close()
        told = self.result(load)
        load.wait(30)
        load.stdout.close()
        self.net.processes.remove(load)
        return told

    def load(self, sci, *words):
        load = self.start_load(sci, *words)
        result = self.result(load)
        self.finish(load)
        return result

    def assert_served(self, result, count):
        self.assertEqual((result['ok'], result['failures']), (count, {}))

    # What the data plane shows

    def slots_of(self, sci):
        """`show slots` of one SCI, by instance."""
        return {row['si_id']: row for row in self.dataplane.show('slots')['slots'] if row['csci_id'] == sci.csci_id}

    def active(self, sci):
        return sum(row['active'] for row in self.slots_of(sci).values())

    def dropped(self, reason):
        return sum(row['count'] for row in self.dataplane.show('drops')['drops'] if row['reason'] == reason)

    def await_no_slots(self, sci, seconds=10):
        await_true(f'no slot of {sci.csci_id} is held', lambda: self.active(sci) == 0, seconds)

    def set(self, sci, instance, *words):
        return self.dataplane.command('set', 'instance', sci.csci_id, instance, *words)


class DsrCase(SystemCase):
    """Instances for l2-dsr: they hold the service's addresses, and answer round the SCI."""

    @classmethod
    def prepare(cls):
        for name in cls.net.instances:
            cls.net.make_dsr(name, net.SCI4 + '/32', net.SCI6 + '/128')
