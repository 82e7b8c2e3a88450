# SPDX-License-Identifier: Apache-2.0
"""The demo's first part: the data plane without a control plane, every instance of the site file HEALTHY."""
import json
import time

from dataplane import DataPlane
from demo_part import PATIENCE, SETTLE, Part, why
from peers import SYN, ACK, client_of, connections, most_open_at_once
from site_file import Sci, text

# On a busy machine the end of a handshake may be seconds late.
LATE = '20s'
TCP4 = Sci(embryonic=LATE)
TCP6 = Sci(address='2001:db8::10', embryonic=LATE)
SLOTS4 = Sci(address='192.0.2.20', balance='slot-based', instance_port=8081, embryonic=LATE)
SLOTS6 = Sci(address='2001:db8::20', balance='slot-based', instance_port=8081, embryonic=LATE)
IDLE4 = Sci(address='192.0.2.30', instance_port=80, affinity='4s')
DNS4 = Sci(port=53, cs_id='DNS', protocol='udp', affinity='4s', instance_port=53)
SERVICES = (TCP4, TCP6, SLOTS4, SLOTS6, IDLE4, DNS4)

CONNECTIONS = 1200      # of each kind, a number that 3 instances can share
LIMIT = 10              # sessions that the limited instance may have


class Alone(Part):
    def set_up(self):
        for instance in self.instances:
            instance.start_dns()
        self.dataplane = DataPlane(self.net, self.folder, text(self.folder / 'cli.sock', SERVICES), name='site')
        self.tell(f'        client - forwarder - SCI (2 workers) - 3 instances (nginx, unbound); site file with short '
                  f'timers: {self.dataplane.site}')

    def many_connections(self, sci, family):
        with self.captures() as packets:
            result = self.finish(self.load(sci, '--total', CONNECTIONS, '--at-once', 50))
        self.step(result['failed'] == 0 and result['ok'] == CONNECTIONS,
                  f'{result["ok"]} TCP connections over {family}, {sci.balance}, each with an HTTP request, 50 at a '
                  f'time: {result["failed"]} failures, limit 0{why(result)} ({result["seconds"]} s)',
                  result=result)
        seen = connections(packets)
        split = sum(1 for names in seen.values() if len(names) != 1)
        total = sum(map(len, packets.values()))
        self.step(split == 0 and len(seen) == CONNECTIONS,
                  f'{total} packets of {len(seen)} connections captured at the instances: {split} connections with '
                  f'packets at more than one, limit 0', packets=total, connections=len(seen), split=split)
        shares = [result['instances'].get(name, 0) for name in self.net.instances]
        off = max(abs(n * 3 / CONNECTIONS - 1) for n in shares)
        self.step(off <= 0.1, f'shares {shares} of {CONNECTIONS}: at most {off:.1%} off an equal share, limit 10 %',
                  shares=shares, off=off)

    def handed_over(self):
        count = self.worker_total('replies_handed_over')
        drops = {row['reason']: row['count'] for row in self.dataplane.show('drops')['drops']}
        self.step(count > 0, f'{count} replies handed over between the two workers, more than 0; dropped: {drops or 0}',
                  handed_over=count, drops=drops)

    def drain_and_limit(self):
        with self.captures() as packets:
            load = self.load(TCP4, '--seconds', 3)
            time.sleep(1)
            self.dataplane.command('set', 'instance', TCP4.csci_id, 'si-1', 'drain')
            self.dataplane.command('set', 'instance', TCP4.csci_id, 'si-2', 'max-sessions', LIMIT)
            self.dataplane.settle()
            time.sleep(SETTLE)
            since = time.time()
            for instance in self.instances:
                instance.requests()
            result = self.finish(load)
        self.step(result['failed'] == 0,
                  f'si-1 drained and si-2 limited to {LIMIT} by CLI under load: {result["failed"]} of {result["ok"]} '
                  f'connections failed, limit 0{why(result)}', result=result)
        later = {name: [p for p in list_ if p.time >= since] for name, list_ in packets.items()}
        new = {name: sum(1 for p in list_ if client_of(p)[1] and p.flags & (SYN | ACK) == SYN)
               for name, list_ in later.items()}
        self.step(new['si-1'] == 0 and new['si-2'] > 0 and new['si-3'] > 0,
                  f'new connections to the drained si-1 from {SETTLE} s after the command: {new["si-1"]}, limit 0 '
                  f'(si-2 {new["si-2"]}, si-3 {new["si-3"]})', new=new)
        counted = self.instances[1].requests()[1]
        open_at_once = most_open_at_once(later['si-2'])
        self.step(0 < counted <= LIMIT and 0 < open_at_once <= LIMIT,
                  f'most connections open at si-2: {counted} by nginx\'s own count, {open_at_once} by its packets, '
                  f'limit {LIMIT}', nginx=counted, packets=open_at_once)
        self.set_all(TCP4, 'enable')

    def refuse(self):
        self.set_all(TCP4, 'max-sessions', 5)
        # They talk on, so that no idle timer ends them however long the others take to be refused.
        held = self.load(TCP4, '--hold', 15, '--at-once', 1, '--talk')
        line = json.loads(held.stdout.readline())
        at_instances = sum(instance.established() for instance in self.instances)
        refused = self.finish(self.load(TCP4, '--total', 100, '--at-once', 10))
        ok = line['ok'] == 15 and at_instances == 15 and refused['failures'] == {'ECONNREFUSED': 100}
        self.step(ok,
                  f'{line["ok"]} connections held fill 3 instances of 5 slots (they count {at_instances}); of 100 '
                  f'more, {refused["failures"].get("ECONNREFUSED", 0)} refused by RST, limit 100, the slowest after '
                  f'{refused["slowest"] * 1000:.0f} ms{"" if ok else why(refused)}', held=line, refused=refused)
        self.let_go(held)
        self.await_slots(TCP4)
        again = self.finish(self.load(TCP4, '--total', 100, '--at-once', 5))
        self.step(again['failed'] == 0, f'these ended: {again["ok"]} of 100 further connections served, limit '
                  f'100{why(again)}', result=again)
        self.set_all(TCP4, 'max-sessions', 1000)

    def reuse_ports(self):
        self.net.run('client', 'sysctl', '-q', '-w', 'net.ipv4.ip_local_port_range=40000 40499')
        with self.captures() as packets:
            result = self.finish(self.load(TCP4, '--total', 5000, '--at-once', 50))
        self.net.run('client', 'sysctl', '-q', '-w', 'net.ipv4.ip_local_port_range=32768 60999')
        seen = connections(packets)
        split = sum(1 for names in seen.values() if len(names) != 1)
        ports = len({port for _, port, _ in seen})
        self.step(result['failed'] == 0 and result['ok'] == 5000 and split == 0,
                  f'{result["ok"]} connections from {ports} source ports, each port used about '
                  f'{5000 // max(ports, 1)} times within {result["seconds"]} s: {result["failed"]} failures, limit 0; '
                  f'{split} connections split{why(result)}', ports=ports, split=split, result=result)

    def dns(self):
        queries = self.folder / 'queries'
        queries.write_text('www.example A\nwho.example TXT\n')
        with self.captures('udp port 53') as packets:
            out = self.net.run('client', 'dnsperf', '-s', DNS4.address, '-d', queries, '-n', 1000, '-c', 60, '-t',
                               PATIENCE, timeout=10 * PATIENCE).stdout
        lost = int(out.split('Queries lost:')[1].split()[0])
        done = int(out.split('NOERROR ')[1].split()[0]) if 'NOERROR ' in out else 0
        flows = {}
        for name, list_ in packets.items():
            for p in list_:
                if p.destination_port == 53:
                    flows.setdefault((p.source, p.source_port), set()).add(name)
        shares = [sum(1 for names in flows.values() if name in names) for name in self.net.instances]
        self.step(done == 2000 and lost == 0 and all(len(names) == 1 for names in flows.values()) and min(shares) > 0,
                  f'{done} of 2000 DNS queries over UDP answered, {lost} lost, limit 0; {len(flows)} client sockets, '
                  f'each at one instance only: {shares}', answered=done, lost=lost, sockets=len(flows), shares=shares)

    def silent_client(self):
        held = self.load(IDLE4, '--hold', 3)
        line = json.loads(held.stdout.readline())
        before = self.active(IDLE4)
        after = self.await_slots(IDLE4)
        self.step(line['ok'] == 3 and before == 3 and after == 0,
                  f'3 connections open and silent for longer than their timer of 4 s: {before} slots held, then '
                  f'{after}', before=before, after=after)
        self.net.stop(held)

    def nothing_left(self):
        active = self.await_slots()
        complete, differences = self.dataplane.audit()
        by_fin, by_timer = (sum(row[key] for row in self.slots()) for key in ('fin', 'timeout'))
        self.step(active == 0 and complete and differences == 0 and by_fin and by_timer,
                  f'at the end {active} slots held, limit 0; ended by FIN {by_fin}, by timer {by_timer}; audit of all '
                  f'entries: {differences} differences, limit 0', active=active, differences=differences,
                  ended_by_fin=by_fin, ended_by_timer=by_timer)

    def end(self):
        status = self.dataplane.stop()
        self.step(status == 0, f'margay-dataplane ended in order on SIGTERM: exit status {status}', status=status)

    def run(self):
        self.set_up()
        for sci, family in ((TCP4, 'IPv4'), (TCP6, 'IPv6'), (SLOTS4, 'IPv4'), (SLOTS6, 'IPv6')):
            self.many_connections(sci, family)
        self.handed_over()
        self.drain_and_limit()
        self.refuse()
        self.reuse_ports()
        self.dns()
        self.silent_client()
        self.nothing_left()
        self.end()
