# SPDX-License-Identifier: Apache-2.0
"""margay-cli against a running data plane: one shot, script, JSON, errors, and by hand on a terminal."""
import json
import subprocess

from case import SystemCase
from dataplane import CLI
from site_file import Sci
from terminal import Terminal

SHOWS = ('port info all', 'port stats all', 'port xstats all', 'sci', 'instance', 'flow', 'flow limit 1', 'slots',
         'slots audit', 'drops', 'neighbours', 'workers', 'config')


class Cli(SystemCase):
    scis = (Sci(),)

    def test_every_show_in_text_and_json(self):
        held = self.start_load(self.scis[0], '--hold', 3)
        self.result(held)
        for words in SHOWS:
            with self.subTest(words):
                self.assertTrue(self.dataplane.command('show', *words.split()).strip())
                self.assertTrue(self.dataplane.show(*words.split()))

    def test_show_flow_names_the_connection(self):
        held = self.start_load(self.scis[0], '--hold', 3)
        self.result(held)
        flows = self.dataplane.show('flow', 'limit', 1000)['flows']
        self.assertEqual(sum(1 for f in flows if f['state'] == 'established'), 3, flows)
        self.assertIn('198.51.100.2', json.dumps(flows))

    def test_error_has_its_position(self):
        done = self.dataplane.run('show', 'nothing')
        self.assertEqual(done.returncode, 1)
        self.assertIn('error at column 6: ', done.stderr)
        self.assertEqual(done.stdout, '')

    def test_unknown_instance(self):
        done = self.dataplane.run('set', 'instance', self.scis[0].csci_id, 'si-9', 'drain')
        self.assertEqual(done.returncode, 1)
        self.assertIn('si-9', done.stderr)

    def test_script_stops_at_the_first_error(self):
        script = f'{self.folder}/script'
        with open(script, 'w') as f:
            f.write('# a comment\nversion\nshow nonsense\nshow workers\n')
        done = subprocess.run([CLI, '--socket', self.dataplane.socket, '-f', script], capture_output=True, text=True,
                              timeout=20)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f'{script}:3: error at column 6: ', done.stderr)
        self.assertIn('margay', done.stdout)
        self.assertNotIn('handed over', done.stdout)

    def test_no_daemon(self):
        done = subprocess.run([CLI, '--socket', f'{self.folder}/nobody.sock', 'version'], capture_output=True,
                              text=True, timeout=20)
        self.assertEqual(done.returncode, 3)
        self.assertIn('nobody.sock', done.stderr)

    def test_by_hand(self):
        terminal = Terminal(CLI, '--socket', self.dataplane.socket, env={'HOME': self.folder})
        self.addCleanup(terminal.close)
        terminal.read_until('margay> ')
        terminal.type('show wor\t')                      # completion: the rest of the word, and a space
        terminal.read_until('kers ')
        terminal.type('\n')
        self.assertIn('handed over', terminal.read_until('margay> '))
        terminal.type('help\n')
        self.assertIn('show workers', terminal.read_until('margay> '))
        terminal.type('\x1b[A\x1b[A\n')                  # history: two up is the command before `help`
        self.assertIn('handed over', terminal.read_until('margay> '))
        terminal.type('quit\n')
        self.assertEqual(terminal.process.wait(5), 0)
        self.assertIsNone(self.dataplane.process.poll())

    def test_clear_port_stats(self):
        self.load(self.scis[0], '--total', 100)
        self.assertGreater(self.received(), 400)
        self.dataplane.command('clear', 'port', 'stats', 'all')
        self.assertLess(self.received(), 100)

    def received(self):
        return sum(row['rx_packets'] for row in self.dataplane.show('port', 'stats', 'all')['ports'])
