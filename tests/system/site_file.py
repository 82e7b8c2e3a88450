# SPDX-License-Identifier: Apache-2.0
"""Site files for the network of net.py, as text."""
import dataclasses

import net

HEAD = '''\
# Timers are short here, so that a run sees every one of them go off within seconds; a real site leaves them out
# and has the defaults.
site: test-site
dataplane:
  cli: {cli}
  control: {control}
  bindings: {bindings}
  workers: {workers}
  idle: {idle}
  flows: {flows}
  ports:
    - name: net0
      device: "{device0}"
      addresses: [192.0.2.2/24, "2001:db8::2/64"]
      gateways: [192.0.2.1, "2001:db8::1"]{extra0}
    - name: net1
      device: "{device1}"
      addresses: [10.1.0.2/24, "2001:db8:1::2/64"]{extra1}
forwarders:
  - {{port: net0, mac: "{forwarder}"}}
scis:
'''

SCI = '''\
  - csci_id: "{csci_id}"
    cs_id: {cs_id}
    protocol: {protocol}
    mode: {mode}
    balance: {balance}
    affinity: {{timeout: {affinity}}}
    timers: {{embryonic: {embryonic}, closing: 3s, time_wait: {time_wait}}}
{extra}    instances:
'''


@dataclasses.dataclass
class Sci:
    address: str = net.SCI4
    port: int = 80
    cs_id: str = 'WEB'
    protocol: str = 'tcp'
    mode: str = 'nat'
    balance: str = 'round-robin'
    affinity: str = '30s'
    time_wait: str = '5s'
    embryonic: str = '2s'
    instance_port: int = 8080
    limits: tuple = (1000, 1000, 1000)     # max_sessions of si-1, si-2, ...
    extra: tuple = ()                      # further lines, without their indentation
    crossed: bool = False                  # instances of the other family

    @property
    def csci_id(self):
        return f'[{self.address}]:{self.port}' if ':' in self.address else f'{self.address}:{self.port}'

    def text(self):
        instance = net.instance6 if (':' in self.address) != self.crossed else net.instance4
        lines = SCI.format(csci_id=self.csci_id, cs_id=self.cs_id, protocol=self.protocol, mode=self.mode,
                           balance=self.balance, affinity=self.affinity, time_wait=self.time_wait,
                           embryonic=self.embryonic,
                           extra=''.join(f'    {line}\n' for line in self.extra))
        for n, limit in enumerate(self.limits, 1):
            lines += (f'      - {{id: si-{n}, address: "{instance(n)}", port: {self.instance_port}, '
                      f'max_sessions: {limit}}}\n')
        return lines


def text(cli, scis, workers=2, idle='sleep', flows=65536, devices=None, extra0=(), extra1=(),
         forwarder=net.FORWARDER_MAC, control='none', bindings='none'):
    """`extra0` and `extra1` are further lines of the ports, without their indentation."""
    device0, device1 = devices or [f'net_af_packet{i},iface=port{i}' for i in (0, 1)]

    def more(extra):
        return ''.join(f'\n      {line}' for line in extra)

    return HEAD.format(cli=cli, control=control, bindings=bindings, workers=workers, idle=idle, flows=flows,
                       device0=device0, device1=device1, extra0=more(extra0), extra1=more(extra1),
                       forwarder=forwarder) + ''.join(s.text() for s in scis)
