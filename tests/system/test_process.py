# SPDX-License-Identifier: Apache-2.0
"""margay-dataplane as a program: site files, start, end."""
import signal
import subprocess
import time

import net
import site_file
from case import SystemCase, await_true
from dataplane import CLI, PROGRAM, DataPlane
from site_file import Sci
from terminal import Terminal

SCIS = (Sci(),)
GOOD = site_file.text('/nonexistent/cli.sock', SCIS)

# What is wrong; text to replace, replacement; the key that the error names, and the line where it stands.
BAD = (
    ('unknown key', '  workers: 2', '  wrokers: 2', 'wrokers', 'workers'),
    ('wrong type', '  workers: 2', '  workers: two', 'workers', 'two'),
    ('mode not built yet', 'mode: nat', 'mode: full-nat', 'mode', 'not built yet'),
    ('duration without its unit', 'closing: 3s', 'closing: 3', 'closing', 'duration'),
    ('no instance has slots', 'max_sessions: 1000', 'max_sessions: 0', 'max_sessions', '1'),
    ('unknown port of a forwarder', '{port: net0,', '{port: net7,', 'forwarders', 'net7'),
    ('two instances of one name', 'id: si-2', 'id: si-1', 'instances', 'si-1'),
    ('mixed families', '"10.1.0.12"', '"2001:db8:1::12"', 'instances[1].address', 'IPv4 and IPv6'),
)


class SiteFiles(SystemCase):
    def check(self, text):
        name = f'{self.folder}/site.yaml'
        with open(name, 'w') as f:
            f.write(text)
        return name, subprocess.run([PROGRAM, '--config', name, '--check'], capture_output=True, text=True, timeout=20)

    def test_good_file(self):
        done = self.check(GOOD)[1]
        self.assertEqual((done.returncode, done.stderr), (0, ''))

    def test_each_error_is_one_line_with_file_line_and_key(self):
        for what, old, new, key, said in BAD:
            with self.subTest(what):
                self.assertIn(old, GOOD)
                text = GOOD.replace(old, new, 1)
                line = GOOD[:GOOD.index(old)].count('\n') + 1
                name, done = self.check(text)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(done.stderr.count('\n'), 1, done.stderr)
                self.assertIn(f'{name}:{line}:', done.stderr)
                self.assertIn(key, done.stderr)
                self.assertIn(said, done.stderr)

    def test_no_forwarder_is_no_site(self):
        done = self.check(GOOD.replace('  - {port: net0, mac: "02:00:00:00:00:01"}\n', ''))[1]
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('forwarders', done.stderr)

    def test_missing_file(self):
        done = subprocess.run([PROGRAM, '--config', '/nonexistent.yaml'], capture_output=True, text=True, timeout=20)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr.count('\n'), 1, done.stderr)
        self.assertIn('/nonexistent.yaml', done.stderr)


class StartAndEnd(SystemCase):
    scis = ()

    def start(self, **changes):
        dataplane = DataPlane(self.net, self.folder, site_file.text(f'{self.folder}/cli.sock', SCIS, **changes))
        self.addCleanup(dataplane.stop)
        return dataplane

    def test_no_such_interface(self):
        with self.assertRaisesRegex(RuntimeError, r'ended with status [1-9]') as caught:
            self.start(devices=['net_af_packet0,iface=nothere', 'net_af_packet1,iface=port1'])
        self.assertIn('net0', str(caught.exception))
        self.assertIn('nothere', str(caught.exception))

    def test_ends_in_order(self):
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(sig=sig.name):
                dataplane = self.start()
                load = self.start_load(SCIS[0], '--hold', 5)
                self.assert_served(self.result(load), 5)
                self.assertEqual(self.net.stop(dataplane.process, sig, timeout=5), 0)
                self.finish(load)

    def test_ignored_hang_up_stays_ignored(self):
        """As nohup(1) has it."""
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGHUP, before)
        dataplane = self.start()
        dataplane.process.send_signal(signal.SIGHUP)
        dataplane.settle()
        time.sleep(0.3)                                 # three turns of the control thread
        self.assertIsNone(dataplane.process.poll())
        self.assertEqual(dataplane.stop(), 0)

    def test_shutdown_by_command(self):
        dataplane = self.start()
        dataplane.command('shutdown')
        await_true('ended', lambda: dataplane.process.poll() == 0)

    def test_second_one_on_the_same_socket_is_refused(self):
        dataplane = self.start()
        with open(f'{self.folder}/second.yaml', 'w') as f:
            f.write(site_file.text(dataplane.socket, SCIS, devices=['net_null0', 'net_null1']))
        second = self.net.run('sci', PROGRAM, '--config', f.name, check=False, timeout=30)
        self.assertNotEqual(second.returncode, 0)
        self.assertIn('cli.sock', second.stderr.splitlines()[-1])
        self.assertEqual(dataplane.run('version').returncode, 0)
        self.assertEqual(dataplane.stop(), 0)

    def test_stop_and_start_forwarding(self):
        dataplane = self.start()
        self.assert_served(self.load(SCIS[0], '--total', 10), 10)
        dataplane.command('stop')
        self.assertEqual(self.load(SCIS[0], '--total', 2, '--timeout', 1)['ok'], 0)
        dataplane.command('start')
        self.assert_served(self.load(SCIS[0], '--total', 10), 10)
        self.assertEqual(dataplane.stop(), 0)


class Foreground(SystemCase):
    """margay-dataplane -i, whose terminal takes no more output: by ^S, or by a line that has gone dead."""

    def setUp(self):
        self.socket = f'{self.folder}/cli.sock'
        site = f'{self.folder}/site.yaml'
        with open(site, 'w') as f:
            f.write(site_file.text(self.socket, [Sci(port=port) for port in range(1, 101)],
                                   devices=['net_null0', 'net_null1'], extra0=[f'mac: "{net.PORT_MACS[0]}"'],
                                   extra1=[f'mac: "{net.PORT_MACS[1]}"']))
        self.terminal = Terminal(*self.net.command('sci', PROGRAM, '--config', site, '-i'), env={'HOME': self.folder})
        self.addCleanup(self.terminal.close)
        self.terminal.read_until('margay> ', 20)

    def assert_answers_and_ends(self):
        done = subprocess.run([CLI, '--socket', self.socket, 'version'], capture_output=True, text=True, timeout=10)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.terminal.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.terminal.process.wait(10), 0)

    def test_amid_a_long_answer(self):
        self.terminal.type('show slots\n')              # 300 lines, more than a terminal holds that nobody reads
        self.terminal.read_until('192.0.2.10:1 ')
        time.sleep(1)                                   # until it is full
        self.assert_answers_and_ends()

    def test_at_the_prompt(self):
        """Nothing to say but the log's lines."""
        self.terminal.stop_output()
        self.assert_answers_and_ends()

    def test_while_keys_are_typed(self):
        self.terminal.stop_output()
        self.terminal.type('show slots\n')
        self.assert_answers_and_ends()

    def test_whole_answer_when_it_goes_on(self):
        self.terminal.type('show slots\n')
        self.terminal.read_until('192.0.2.10:1 ')
        time.sleep(1)
        self.terminal.read_until('192.0.2.10:100 ')
        self.terminal.read_until('margay> ')
        self.terminal.type('shutdown\n')
        self.assertEqual(self.terminal.process.wait(10), 0)
