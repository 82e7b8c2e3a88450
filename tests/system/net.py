# SPDX-License-Identifier: Apache-2.0
"""The network that the system tests and the demo run in: namespaces of their own, named after this process, joined
by veth pairs, taken down again however the process ends.

    client ---- forwarder ---- [port0] sci [port1] ---- site (bridge) ---- si-1, si-2, ...
                    |                                       |
                    +---------------------------------------+   only l2-dsr: replies go round the SCI

    client     198.51.100.2   2001:db8:100::2
    forwarder  198.51.100.1   2001:db8:100::1   towards the client
               192.0.2.1      2001:db8::1       towards the SCI, which has 192.0.2.2 and 2001:db8::2 there
               10.1.0.1       2001:db8:1::1     towards the site
    si-N       10.1.0.(10+N)  2001:db8:1::(10+N); the SCI has 10.1.0.2 and 2001:db8:1::2 there

port0 and port1 belong to the data plane: the kernel has no address on them and answers nothing there. No veth leaves
checksums or segments to a network card that is not there."""
import atexit
import contextlib
import os
import re
import shlex
import signal
import subprocess

CLIENT4, CLIENT6 = '198.51.100.2', '2001:db8:100::2'
SCI4, SCI6 = '192.0.2.10', '2001:db8::10'
OWN4, OWN6 = '192.0.2.2', '2001:db8::2'
SITE4, SITE6 = '10.1.0.2', '2001:db8:1::2'
FORWARDER_MAC = '02:00:00:00:00:01'
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
PORT_MACS = ('02:00:00:00:0f:00', '02:00:00:00:0f:01')


def instance4(n):
    return f'10.1.0.{10 + n}'


def instance6(n):
    return f'2001:db8:1::{10 + n}'


def instance_mac(n):
    return f'02:00:00:00:01:{n:02x}'


class Net:
    """Without instances there is nothing yet. `site`: a second one, beside the first, has another name; the first
    reaches its namespaces as SITE.NAME."""

    def __init__(self, instances=3, site=''):
        self.prefix = f'mgy{os.getpid()}-{site and site + "."}'
        self.instances = [f'si-{n}' for n in range(1, instances + 1)]
        self.processes = []
        self.namespaces = []
        self.scripts = None
        atexit.register(self.close)
        for s in ENDING:
            signal.signal(s, _end)
        _sweep()
        if instances:
            with self.gathered():
                self._build()

    # Processes

    def command(self, namespace, *words):
        return ['ip', 'netns', 'exec', self.prefix + namespace, *map(str, words)]

    def run(self, namespace, *words, check=True, timeout=60, **kwargs):
        """Runs to its end; output as text."""
        done = subprocess.run(self.command(namespace, *words), text=True, capture_output=True, timeout=timeout,
                              **kwargs)
        if check and done.returncode != 0:
            raise RuntimeError(f'{" ".join(map(str, words))} in {namespace}: status {done.returncode}\n'
                               f'{done.stdout}{done.stderr}')
        return done

    def start(self, namespace, *words, **kwargs):
        """Starts and keeps running until stop() or the end. `ip netns exec` becomes the command: same pid."""
        process = subprocess.Popen(self.command(namespace, *words), **kwargs)
        self.processes.append(process)
        return process

    def stop(self, process, sig=signal.SIGTERM, timeout=10):
        """Ends it and returns its exit status."""
        if process.poll() is None:
            process.send_signal(sig)
            try:
                process.wait(timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process in self.processes:
            self.processes.remove(process)
        return process.returncode

    def close(self):
        for process in list(self.processes):
            self.stop(process, signal.SIGKILL)
        lines = ''.join(f'netns del {name}\n' for name in self.namespaces)
        self.namespaces = []
        subprocess.run(['ip', '-force', '-batch', '-'], input=lines, text=True, check=False)

    # Network

    def _build(self):
        for name in ['client', 'forwarder', 'sci', 'site', *self.instances]:
            self.add(name)
        self._sysctl('forwarder', 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1')
        self.veth('client', 'eth0', 'forwarder', 'client')
        self.veth('forwarder', 'sci', 'sci', 'port0', FORWARDER_MAC, PORT_MACS[0])
        self.veth('sci', 'port1', 'site', 'sci', PORT_MACS[1])
        self.veth('forwarder', 'site', 'site', 'forwarder')
        self.ip('site', 'link', 'add', 'bridge', 'type', 'bridge', 'mcast_snooping', '0')
        self.ip('site', 'link', 'set', 'bridge', 'up')
        for port in ('sci', 'forwarder'):
            self.ip('site', 'link', 'set', port, 'master', 'bridge')
        for port in ('port0', 'port1'):
            self.hand_to_data_plane(port)
        self.addresses('client', 'eth0', f'{CLIENT4}/24', f'{CLIENT6}/64')
        self.addresses('forwarder', 'client', '198.51.100.1/24', '2001:db8:100::1/64')
        self.addresses('forwarder', 'sci', '192.0.2.1/24', '2001:db8::1/64')
        self.addresses('forwarder', 'site', '10.1.0.1/24', '2001:db8:1::1/64')
        self.routes('client', '198.51.100.1', '2001:db8:100::1')
        for n, name in enumerate(self.instances, 1):
            self.veth(name, 'eth0', 'site', name, instance_mac(n))
            self.ip('site', 'link', 'set', name, 'master', 'bridge')
            self.addresses(name, 'eth0', f'{instance4(n)}/24', f'{instance6(n)}/64')
            self.routes(name, SITE4, SITE6)

    def add(self, name):
        """One more namespace."""
        _ip('netns', 'add', self.prefix + name)
        self.namespaces.append(self.prefix + name)
        self._sysctl(name, 'net.ipv6.conf.all.accept_dad=0', 'net.ipv6.conf.default.accept_dad=0',
                     'net.ipv6.conf.default.accept_ra=0', 'net.ipv4.conf.all.rp_filter=0',
                     'net.ipv4.conf.default.rp_filter=0')
        self.ip(name, 'link', 'set', 'lo', 'up')

    def manage(self, *names):
        """A management network over these namespaces, apart from the service's: {name: its address there}. Those that
        are not there yet are made."""
        addresses = {}
        with self.gathered():
            self.add('management')
            self.ip('management', 'link', 'add', 'bridge', 'type', 'bridge', 'mcast_snooping', '0')
            self.ip('management', 'link', 'set', 'bridge', 'up')
            for n, name in enumerate(names, 1):
                if not os.path.exists(f'/run/netns/{self.prefix}{name}'):
                    self.add(name)
                self.veth(name, 'management', 'management', name)
                self.ip('management', 'link', 'set', name, 'master', 'bridge')
                addresses[name] = f'203.0.113.{n}'
                self.addresses(name, 'management', f'{addresses[name]}/24')
        return addresses

    @contextlib.contextmanager
    def gathered(self):
        """What is set up meanwhile in a namespace goes there at the end as one script: a hundred entries into
        namespaces would cost more than all else."""
        self.scripts = {}
        try:
            yield
            scripts = self.scripts
        finally:
            self.scripts = None
        for namespace, lines in scripts.items():
            self.run(namespace, 'sh', '-ex', input='\n'.join(lines))

    def set_up(self, namespace, *words):
        if self.scripts is None:
            self.run(namespace, *words)
        else:
            self.scripts.setdefault(namespace, []).append(shlex.join(map(str, words)))

    def ip(self, namespace, *words):
        self.set_up(namespace, 'ip', *words)

    def _sysctl(self, namespace, *settings):
        self.set_up(namespace, 'sysctl', '-q', '-w', *settings)

    def veth(self, namespace_a, name_a, namespace_b, name_b, mac_a=None, mac_b=None):
        a = ['address', mac_a] if mac_a else []
        b = ['address', mac_b] if mac_b else []
        _ip('link', 'add', name_a, *a, 'netns', self.prefix + namespace_a, 'type', 'veth',
            'peer', 'name', name_b, *b, 'netns', self.prefix + namespace_b)
        for namespace, name in ((namespace_a, name_a), (namespace_b, name_b)):
            off = [word for feature in ('tx', 'rx', 'tso', 'gso', 'gro') for word in (feature, 'off')]
            self.set_up(namespace, 'ethtool', '-K', name, *off)
            self.ip(namespace, 'link', 'set', name, 'up')

    def hand_to_data_plane(self, port):
        """The kernel of the SCI's namespace answers nothing on this interface, whatever addresses others have."""
        self._sysctl('sci', f'net.ipv6.conf.{port}.disable_ipv6=1', f'net.ipv4.conf.{port}.arp_ignore=8',
                     f'net.ipv4.conf.{port}.rp_filter=1')

    def addresses(self, namespace, interface, *addresses):
        for address in addresses:
            self.ip(namespace, 'address', 'add', address, 'dev', interface, *(['nodad'] if ':' in address else []))

    def routes(self, namespace, gateway4, gateway6):
        self.ip(namespace, 'route', 'replace', 'default', 'via', gateway4)
        self.ip(namespace, '-6', 'route', 'replace', 'default', 'via', gateway6)

    def make_dsr(self, name, *service_addresses):
        """The instance holds the service's addresses itself, tells nobody on the link, and answers the client by the
        forwarder, not by the SCI."""
        self._sysctl(name, 'net.ipv4.conf.all.arp_ignore=1', 'net.ipv4.conf.all.arp_announce=2')
        for address in service_addresses:
            self.ip(name, 'address', 'add', address, 'dev', 'lo', *(['nodad'] if ':' in address else []))
        self.routes(name, '10.1.0.1', '2001:db8:1::1')


def _end(*_):
    """Once: a second signal must not interrupt the tidying up."""
    for s in ENDING:
        signal.signal(s, signal.SIG_IGN)
    raise KeyboardInterrupt


def _sweep():
    """Takes down what a process left behind that was killed outright."""
    for name in subprocess.run(['ip', 'netns', 'list'], text=True, capture_output=True).stdout.split():
        owner = re.fullmatch(r'mgy(\d+)-.*', name)
        if owner and not os.path.exists(f'/proc/{owner.group(1)}'):
            pids = subprocess.run(['ip', 'netns', 'pids', name], text=True, capture_output=True).stdout.split()
            for pid in pids:
                os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def _ip(*words):
    done = subprocess.run(['ip', *words], text=True, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f'ip {" ".join(words)}: {done.stderr.strip()}')
