# SPDX-License-Identifier: Apache-2.0
"""The data plane killed and started again under open connections: they go on."""
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from case import HERE, SystemCase, await_true
from dataplane import PROGRAM, DataPlane
from site_file import Sci
from test_table import Control

# On a busy machine a client's answer to a SYN-ACK may have to be sent more often than the short timers of the other
# tests allow for.
TIMES = {'affinity': '60s', 'time_wait': '2s', 'embryonic': '20s'}
NAT4 = Sci(**TIMES)


class RestartCase(SystemCase):
    scis = (NAT4,)

    @classmethod
    def prepare(cls):
        memory = tempfile.TemporaryDirectory(dir='/dev/shm', prefix='margay-')
        cls.addClassCleanup(memory.cleanup)
        cls.image = pathlib.Path(memory.name, 'bindings')
        cls.site = {**cls.site, 'bindings': cls.image}

    def kill(self):
        self.net.stop(self.dataplane.process, signal.SIGKILL)

    def start(self, **changes):
        type(self).dataplane = DataPlane(self.net, self.folder, self.site_text(**changes))
        return self.dataplane.show('bindings')['bindings'][0]

    def restart(self, **changes):
        """Killed and started again; what the new process says it took over."""
        self.kill()
        return self.start(**changes)

    def retransmitted(self):
        """Segments that had to be sent again, by all ends together: what the gaps swallowed, and a little more."""
        total = 0
        for name in ('client', *self.net.instances):
            lines = [line.split() for line in self.net.run(name, 'cat', '/proc/net/snmp').stdout.splitlines()
                     if line.startswith('Tcp:')]
            total += int(dict(zip(*lines))['RetransSegs'])
        return total

    def assert_audit_clean(self):
        await_true('the audit judges every instance', lambda: self.dataplane.audit()[0])
        self.assertEqual(self.dataplane.audit()[1], 0)


class Restart(RestartCase):
    def start_download(self):
        body = os.urandom(3 << 20)                                # some 12 s
        for name in self.net.instances:
            pathlib.Path(self.folder, 'slow').write_bytes(body)
        download = self.net.start('client', sys.executable, HERE / 'download.py', NAT4.address, NAT4.port, '/slow',
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.net.stop, download, signal.SIGKILL)
        return download, hashlib.sha256(body).hexdigest()

    def test_connections_go_on(self):
        """Killed four times, then ended in good order; as many, more and fewer workers."""
        talk = self.start_load(NAT4, '--hold', 20, '--talk')
        self.assert_served(self.result(talk), 20)
        download, expected = self.start_download()
        await_true('the download has begun', lambda: self.active(NAT4) == 21)
        self.assertEqual(self.restart()['sessions'], 21)
        for workers in (2, 3, 1):                                 # the download may end between them
            with self.subTest(workers=workers):
                started = self.restart(workers=workers)
                self.assertIn((started['sessions'], started['refused']), ((20, ''), (21, '')), started)
                self.assertIn(self.active(NAT4), (20, 21))
                self.assert_audit_clean()
        self.assertEqual(self.dataplane.stop(), 0)
        self.assertGreaterEqual(self.start()['sessions'], 20)
        got = json.loads(download.communicate(timeout=60)[0])
        self.assertEqual((got['sha256'], got['error']), (expected, None), got)
        told = self.finish_talk(talk)
        self.assertEqual([row['ended'] for row in told.values()], [{}] * len(told))
        self.assertEqual(sum(row['open'] for row in told.values()), 20)
        self.await_no_slots(NAT4, 20)
        self.assert_audit_clean()
        self.assert_served(self.load(NAT4, '--total', 50), 50)

    def test_limit_holds_for_what_came_over(self):
        """More sessions came over than the new site file allows: they go on, and nothing new is admitted."""
        held = self.start_load(NAT4, '--hold', 30)
        self.assert_served(self.result(held), 30)
        self.kill()
        tight = Sci(**TIMES, limits=(5, 5, 5))
        type(self).scis = (tight,)
        self.addCleanup(setattr, type(self), 'scis', (NAT4,))
        self.start()
        slots = self.slots_of(NAT4).values()
        self.assertEqual((sum(s['active'] for s in slots), sum(s['over'] for s in slots)), (30, 15))
        self.assertEqual(self.load(NAT4, '--total', 5)['failures'], {'ECONNREFUSED': 5})
        self.finish(held)
        self.await_no_slots(NAT4)
        self.assert_served(self.load(NAT4, '--total', 15, '--at-once', 5), 15)
        type(self).scis = (NAT4,)
        self.restart()

    def test_refused_image_starts_empty(self):
        """unknown_flow: reset. The clients of the lost bindings hear of it at once, and connect again."""
        damages = (('not an image', lambda f: f.write(b'\0' * 8), 'is no image of bindings'),
                   ('cut off', lambda f: f.truncate(8192), 'has 8192 bytes, expected'),
                   ('empty', lambda f: f.truncate(0), 'is empty'))
        for what, damage, said in damages:
            with self.subTest(what):
                talk = self.start_load(NAT4, '--hold', 6, '--talk')
                self.assert_served(self.result(talk), 6)
                self.kill()
                with open(self.image, 'r+b') as f:
                    damage(f)
                started = self.start()
                self.assertIn(said, started['refused'])
                self.assertEqual((started['adopted'], self.active(NAT4)), (0, 0))
                self.assertIn(said, self.dataplane.log_text())
                time.sleep(4)                                     # till the last retransmission after the gap
                told = self.finish_talk(talk)
                ended = [row['ended'] for row in told.values()]
                self.assertEqual(sum(row.get('ECONNRESET', 0) for row in ended), 6, told)
                self.assert_served(self.load(NAT4, '--total', 20), 20)
                self.await_no_slots(NAT4)

    def test_file_is_one_process_s(self):
        second = self.net.run('sci', PROGRAM, '--config', self.dataplane.site, check=False)
        self.assertEqual(second.returncode, 1)
        self.assertIn(f'{self.image}: process {self.dataplane.process.pid} has it', second.stderr)


class NoRoom(RestartCase):
    @classmethod
    def prepare(cls):
        super().prepare()
        small = pathlib.Path(cls.folder, 'small')
        small.mkdir()
        subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', small], check=True)
        cls.addClassCleanup(subprocess.run, ['umount', '-l', small], check=True)
        cls.site['bindings'] = cls.image = small / 'bindings'

    def test_one_image_where_there_is_no_room_for_two(self):
        """64 Ki bindings are 4 MiB."""
        talk = self.start_load(NAT4, '--hold', 20, '--talk')
        self.assert_served(self.result(talk), 20)
        self.assertEqual(self.restart(workers=1)['sessions'], 20)
        self.assertIn('no room for two images', self.dataplane.log_text())
        time.sleep(4)
        told = self.finish_talk(talk)
        self.assertEqual([row['ended'] for row in told.values()], [{}] * len(told))
        self.await_no_slots(NAT4)
        self.assert_audit_clean()

    def test_no_room_for_one(self):
        """The old image stays, and the next process with room for its own takes it over."""
        held = self.start_load(NAT4, '--hold', 5)
        self.assert_served(self.result(held), 5)
        self.kill()
        with self.assertRaisesRegex(RuntimeError, 'bindings: no room for 9 MiB: No space left'):
            self.start(flows=2 * 65536)
        self.assertEqual(self.start()['sessions'], 5)
        self.finish(held)
        self.await_no_slots(NAT4)


class HugePages(RestartCase):
    @classmethod
    def prepare(cls):
        pages = pathlib.Path('/sys/kernel/mm/hugepages/hugepages-2048kB')
        reserved = (pages / 'nr_hugepages').read_text()
        cls.addClassCleanup((pages / 'nr_hugepages').write_text, reserved)
        (pages / 'nr_hugepages').write_text(str(int(reserved) + 16))
        if int((pages / 'free_hugepages').read_text()) < 16:
            raise unittest.SkipTest('the kernel finds no 16 huge pages of 2 MiB')
        super().prepare()
        huge = pathlib.Path(cls.folder, 'huge')
        huge.mkdir()
        subprocess.run(['mount', '-t', 'hugetlbfs', '-o', 'size=32m', 'hugetlbfs', huge], check=True)
        cls.addClassCleanup(subprocess.run, ['umount', '-l', huge], check=True)
        cls.site['bindings'] = cls.image = huge / 'bindings'

    def test_bindings_on_huge_pages(self):
        held = self.start_load(NAT4, '--hold', 20)
        self.assert_served(self.result(held), 20)
        self.assertNotIn('bindings are on a disk', self.dataplane.log_text())
        started = self.restart(workers=3)
        self.assertEqual((started['sessions'], started['refused'], started['mib'] % 2), (20, '', 0), started)
        self.finish(held)
        self.await_no_slots(NAT4)
        self.assert_audit_clean()


class WithControl(RestartCase):
    @classmethod
    def prepare(cls):
        super().prepare()
        cls.control = f'{cls.folder}/control.sock'
        cls.site['control'] = cls.control

    def start_control(self):
        control = Control(self)
        self.addCleanup(control.end)
        return control

    def test_saved_table_holds_until_the_first_snapshot(self):
        first = self.start_control()
        first.ask('health', 'si-2', 'unhealthy')
        generation = first.commit()
        talk = self.start_load(NAT4, '--hold', 20, '--talk')
        self.assert_served(self.result(talk), 20)
        started = self.restart(workers=3)
        self.assertEqual((started['sessions'], started['of_generation']), (20, generation), started)
        table = self.dataplane.show('table')
        self.assertEqual((table['generation'], table['connected']), (generation, False))
        self.assertEqual({row['si_id']: row['health'] for row in table['instances']},
                         {'si-1': 'HEALTHY', 'si-2': 'UNHEALTHY', 'si-3': 'HEALTHY'})
        served = self.load(NAT4, '--total', 20)
        self.assert_served(served, 20)
        self.assertEqual(set(served['instances']), {'si-1', 'si-3'})
        second = self.start_control()
        self.assertEqual(second.ask('running')['generation'], generation)
        self.assertEqual(second.commit(), generation + 1)
        # A snapshot is saved within a turn of the control loop, also when nothing but its generation is new.
        time.sleep(1)
        self.assertEqual(self.restart()['of_generation'], generation + 1)
        time.sleep(4)                                             # till the last retransmission after the gap
        told = self.finish_talk(talk)
        self.assertEqual([row['ended'] for row in told.values()], [{}] * len(told))
        self.await_no_slots(NAT4)
        self.assert_audit_clean()


class Often(RestartCase):
    """Many restarts under load, with another number of workers each time."""
    restarts = int(os.environ.get('MARGAY_RESTARTS', '8'))

    def test_restarts_under_load(self):
        before = self.retransmitted()
        talk = self.start_load(NAT4, '--hold', 50, '--talk')
        self.assert_served(self.result(talk), 50)
        load = self.start_load(NAT4, '--at-once', 20, '--timeout', 120)
        gaps = []
        for n in range(self.restarts):
            time.sleep(0.5)
            began = time.monotonic()
            started = self.restart(workers=1 + n % 3)
            gaps.append(time.monotonic() - began)
            self.assertGreaterEqual(started['sessions'], 50)
            self.assertEqual((started['refused'], started['damaged'], started['duplicate']), ('', 0, 0), started)
        print(f'\n{len(gaps)} restarts, {max(gaps):.1f} s the longest, '
              f'{self.retransmitted() - before} segments sent again')
        told = self.finish_talk(talk)
        self.assertEqual([row['ended'] for row in told.values()], [{}] * len(told))
        load.send_signal(signal.SIGTERM)
        result = self.result(load)
        self.assertEqual(result['failures'], {})
        self.assertGreater(result['ok'], 20 * self.restarts)
        self.finish(load)
        self.await_no_slots(NAT4, 30)
        self.assert_audit_clean()
