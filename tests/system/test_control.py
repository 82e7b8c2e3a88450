# SPDX-License-Identifier: Apache-2.0
"""Data plane, control plane and real servers together. Probes reach the instances over the data plane's `kernel:`
interface, as on a real site."""
import pathlib
import signal
import time

import net
import site_file
from case import SystemCase, await_true
from control import Control
from dataplane import DataPlane
from peers import Capture, Instance
from site_file import Sci
from test_limits import new_connections

# 2 passes a second apart make HEALTHY, 2 failures half a second apart UNHEALTHY.
HEALTH = ('health:',
          '  confirm_interval: 500ms',
          '  liveness: {http: "http://{address}:{port}/", interval: 1s, timeout: 500ms, fall: 2, rise: 2}',
          'report: {interval: 5s}')
SCI = Sci(limits=(100, 100, 100), extra=HEALTH)


class ControlCase(SystemCase):
    """Each test has a data plane and a control plane of its own, unless it says otherwise."""
    under = ()                             # words before each program's name

    def setUp(self):
        for file in pathlib.Path(self.folder).glob('reports*'):
            file.unlink()
        self.site_file = f'{self.folder}/dataplane.yaml'

    def text(self, *scis):
        text = site_file.text(f'{self.folder}/cli.sock', scis or (SCI,), control=f'{self.folder}/dataplane.sock',
                              extra1=('kernel: mg1',))
        return text + Control.section(self.folder)

    def start_data_plane(self):
        self.dataplane = DataPlane(self.net, self.folder, self.text(), under=self.under)
        self.addCleanup(lambda plane=self.dataplane: self.net.stop(plane.process, signal.SIGKILL))

    def start_control(self, name='control'):
        control = Control(self.net, self.folder, self.site_file, name, self.under)
        self.addCleanup(control.kill)
        return control

    def start(self):
        self.start_data_plane()
        self.control = self.start_control()
        self.await_gas(300)

    def gas(self):
        reports = self.control.reports()
        return reports[-1].get('gas') if reports else None

    def await_gas(self, gas, seconds=15):
        await_true(f'a report of GAS {gas}', lambda: self.gas() == gas, seconds)
        return self.control.reports()[-1]

    def health(self):
        return {row['si_id']: row['health'] for row in self.dataplane.show('table')['instances']}

    def await_health(self, instance, health, seconds=10):
        await_true(f'{instance} is {health}', lambda: self.health()[instance] == health, seconds)


class Health(ControlCase):
    def test_whichever_starts_first(self):
        with open(self.site_file, 'w') as f:
            f.write(self.text())
        self.control = self.start_control()
        self.await_gas(0)
        self.start_data_plane()
        self.await_gas(300)
        self.assert_served(self.load(SCI, '--total', 60), 60)
        self.assertEqual(self.control.stop(), 0)
        self.assertEqual(self.control.reports()[-1]['trigger'], 'TRIGGER_STOP')

    def test_a_dead_instance_gets_nothing_new_and_comes_back(self):
        self.start()
        server = self.servers[2]
        self.net.stop(server.nginx, signal.SIGKILL)
        self.await_health('si-3', 'UNHEALTHY')
        report = self.await_gas(200, 5)
        self.assertEqual(report['health_summary'].get('healthy'), 2)
        self.dataplane.settle()
        capture = Capture(self.net, 'si-3', expression=f'tcp and not host {net.SITE4}', folder=self.folder)
        self.assert_served(self.load(SCI, '--total', 90), 90)
        self.assertEqual(new_connections(capture.stop()), 0)
        self.servers[2] = Instance(self.net, server.name, self.folder)
        self.await_health('si-3', 'HEALTHY', 15)
        self.await_gas(300)

    def test_gas_counts_what_is_held_exactly(self):
        self.start()
        held = self.start_load(SCI, '--hold', 60, '--at-once', 5)
        self.assert_served(self.result(held), 60)
        self.await_gas(240, 10)
        self.finish(held)
        self.await_gas(300, 20)


class Crashes(ControlCase):
    def test_control_killed_under_load_is_taken_over_without_a_trace(self):
        self.start()
        load = self.start_load(SCI, '--seconds', 6, '--at-once', 4)
        time.sleep(1)
        before = {row['si_id']: row['health_seconds'] for row in self.dataplane.show('table')['instances']}
        known = len(self.control.reports())
        epoch = int(self.control.reports()[-1]['epoch'])
        self.control.kill()
        await_true('the data plane says so', lambda: self.dataplane.show('table')['fail_static'])
        self.control = self.start_control('control2')
        await_true('the new one reports', lambda: len(self.control.reports()) > known)
        result = self.result(load)
        self.assertEqual(result['failures'], {})
        self.assertGreater(result['ok'], 100)
        new = self.control.reports()[known:]
        self.assertEqual(new[0]['trigger'], 'TRIGGER_START')
        self.assertGreater(int(new[0]['epoch']), epoch)
        self.assertEqual([r for r in new if r['gas'] < 200], [])
        self.assertNotIn('health changed', self.control.log_text())
        after = {row['si_id']: row['health_seconds'] for row in self.dataplane.show('table')['instances']}
        for instance, seconds in before.items():
            self.assertGreaterEqual(after[instance], seconds)

    def test_a_frozen_data_plane_is_gas_0_within_2_seconds(self):
        self.start()
        self.dataplane.process.send_signal(signal.SIGSTOP)
        frozen = time.monotonic()
        report = self.await_gas(0, 5)
        took = time.monotonic() - frozen
        self.dataplane.process.send_signal(signal.SIGCONT)
        self.assertLess(took, 2)
        self.assertEqual(report['trigger'], 'TRIGGER_ALL_DOWN')
        self.await_gas(300, 10)
        self.assertIn('TRIGGER_RECOVERY', [r['trigger'] for r in self.control.reports()])
        self.assert_served(self.load(SCI, '--total', 30), 30)

    def test_a_stopped_data_plane_is_gas_0_until_it_goes_on(self):
        self.start()
        self.dataplane.command('stop')
        self.assertEqual(self.await_gas(0, 2)['trigger'], 'TRIGGER_ALL_DOWN')
        self.dataplane.command('start')
        self.await_gas(300, 5)
        self.assert_served(self.load(SCI, '--total', 30), 30)

    def test_a_dead_data_plane_is_gas_0_at_once(self):
        self.start()
        self.net.stop(self.dataplane.process, signal.SIGKILL)
        killed = time.monotonic()
        self.await_gas(0, 5)
        self.assertLess(time.monotonic() - killed, 1)
        self.start_data_plane()
        self.await_gas(300)
        self.assert_served(self.load(SCI, '--total', 30), 30)


class Reload(ControlCase):
    def test_whole_or_not_at_all(self):
        self.start()
        held = self.start_load(SCI, '--hold', 30, '--at-once', 5)
        self.assert_served(self.result(held), 30)
        with open(self.site_file, 'w') as f:
            f.write(self.text(Sci(limits=(100, 100, 100), extra=HEALTH + ('colour: red',))))
        refused = self.control.run('reload')
        self.assertEqual(refused.returncode, 1)
        self.assertIn('colour', refused.stderr)
        with open(self.site_file, 'w') as f:
            f.write(self.text(Sci(limits=(100, 150, 100), extra=HEALTH)))
        done = self.control.run('reload')
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        self.assertIn(f'scis[{SCI.csci_id}].instances[si-2]: changed', done.stdout)
        self.await_gas(320, 10)
        self.assertEqual(self.active(SCI), 30)
        self.assertNotIn('to=UNHEALTHY', self.control.log_text())
        self.finish(held)
