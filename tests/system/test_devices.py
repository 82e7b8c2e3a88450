# SPDX-License-Identifier: Apache-2.0
"""The same service over other DPDK devices."""
import os
import subprocess

import net
import site_file
from case import SystemCase, await_true
from dataplane import DataPlane
from site_file import Sci

NAT4 = Sci()


class DeviceCase(SystemCase):
    def start(self, devices, **changes):
        dataplane = DataPlane(self.net, self.folder, site_file.text(f'{self.folder}/cli.sock', (NAT4,), devices=devices,
                                                                    **changes))
        self.addCleanup(dataplane.stop)
        return dataplane

    def served(self):
        """Neighbours' caches of the device before are out of date."""
        self.net.run('forwarder', 'ip', 'neigh', 'flush', 'all')
        for name in self.net.instances:
            self.net.run(name, 'ip', 'neigh', 'flush', 'all')
        await_true('first request served', lambda: self.load(NAT4, '--total', 1, '--timeout', 1)['ok'] == 1)
        self.assert_served(self.load(NAT4, '--total', 200, '--at-once', 20), 200)


class Devices(DeviceCase):
    def test_af_xdp(self):
        self.start(['net_af_xdp0,iface=port0', 'net_af_xdp1,iface=port1'])
        self.served()

    def test_memif(self):
        """Another DPDK process carries frames between the memif and the interface that the network knows."""
        memif = f'id=0,socket={self.folder}/memif.sock,socket-abstract=no'
        log = open(f'{self.folder}/testpmd.log', 'a+')
        self.addCleanup(log.close)
        carrier = self.net.start(
            'sci', 'dpdk-testpmd', '--lcores=0@(0,1),1@(0,1)', '--no-pci', '--no-huge', '--no-shconf', '-m', '256',
            '--no-telemetry', '--iova-mode=va', f'--file-prefix=carrier-{os.getpid()}',
            f'--vdev=net_memif0,role=server,{memif}', '--vdev=net_af_packet0,iface=port1', '--', '--auto-start',
            '--forward-mode=io', '--total-num-mbufs=8192', '--no-lsc-interrupt',
            stdin=subprocess.PIPE, stdout=log, stderr=log)
        self.addCleanup(carrier.stdin.close)
        self.addCleanup(self.net.stop, carrier)
        await_true('the carrier is ready', lambda: log.seek(0) == 0 and 'packet forwarding' in log.read(), 20)
        dataplane = self.start(['net_af_packet0,iface=port0',
                                f'net_memif0,role=client,mac={net.PORT_MACS[1]},{memif}'])
        self.served()
        result = self.load(NAT4, '--total', 5000, '--at-once', 100)
        drops = {row['reason']: row['count'] for row in dataplane.show('drops')['drops']}
        self.assertEqual((result['ok'], result['failures']), (5000, {}), drops)
        self.assertEqual(carrier.poll(), None)

    def test_fewer_queues_than_workers(self):
        self.start(['net_af_packet0,iface=port0,qpairs=1', 'net_af_packet1,iface=port1,qpairs=1'])
        self.served()

    def test_one_and_four_workers(self):
        for workers in (1, 4):
            with self.subTest(workers=workers):
                dataplane = self.start(None, workers=workers)
                self.served()
                dataplane.stop()

    def test_null_ring_and_pcap_start(self):
        for devices in (['net_null0', 'net_null1'], ['net_ring0', 'net_ring1'],
                        [f'net_pcap0,tx_pcap={self.folder}/0.pcap', f'net_pcap1,tx_pcap={self.folder}/1.pcap']):
            with self.subTest(devices=devices):
                dataplane = self.start(devices, extra0=[f'mac: "{net.PORT_MACS[0]}"'],
                                       extra1=[f'mac: "{net.PORT_MACS[1]}"'])
                self.assertEqual(len(dataplane.show('port', 'info', 'all')['ports']), 2)
                self.assertEqual(dataplane.stop(), 0)


class Taps(DeviceCase):
    def test_tap(self):
        """The taps' ends in the kernel take the places of the forwarder's interface and of the site's, with MAC
        addresses of their own: a tap has the data plane's at first."""
        dataplane = self.start(['net_tap0,iface=tap0', 'net_tap1,iface=tap1'])
        self.net.ip('forwarder', 'link', 'set', 'sci', 'down')
        self.net.ip('sci', 'link', 'set', 'tap0', 'address', net.FORWARDER_MAC, 'netns', self.net.prefix + 'forwarder')
        self.net.ip('forwarder', 'link', 'set', 'tap0', 'up')
        self.net.addresses('forwarder', 'tap0', '192.0.2.1/24')
        self.net.ip('sci', 'link', 'set', 'tap1', 'address', '02:00:00:00:0f:11', 'netns', self.net.prefix + 'site')
        self.net.ip('site', 'link', 'set', 'sci', 'nomaster')
        self.net.ip('site', 'link', 'set', 'tap1', 'master', 'bridge', 'up')
        self.served()
        self.assertEqual({row['driver'] for row in dataplane.show('port', 'info', 'all')['ports']}, {'net_tap'})
