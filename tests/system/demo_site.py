# SPDX-License-Identifier: Apache-2.0
"""The demo's second part: the site with margay-control. Probes travel through the data plane's exception path; what the
control plane makes of them is read from its reports (JSON lines), its log and the data plane's `show table`."""
import datetime
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from control import Control
from dataplane import CommandFailed, DataPlane
from demo_part import HERE, LAST_TIMER, PATIENCE, SETTLE, Part, await_, why
from net import SITE4
from peers import ACK, SYN, Capture, Instance
from site_file import Sci, text

def milliseconds(seconds):
    return f'{round(seconds * 1000)}ms'


INTERVAL, CONFIRM, TIMEOUT, FALL, RISE = 2, 0.3, 1.9, 3, 2     # of liveness, in the site file below
# Performance: the bound of the response time, how often it is judged, and how long the slow one takes. A busy machine
# makes nobody slow.
BOUND, LOOK, DELAY = 0.6, 1.5, 1.2
RAMP = 4
FACTOR = 0.5                                            # degradation_factor, the default
LIMITS = {'si-1': 101, 'si-2': 201, 'si-3': 301}        # odd: half of one is to be rounded down
# No timer goes off while a busy machine starts the data plane again.
WEB = Sci(limits=tuple(LIMITS.values()), affinity='120s', embryonic='60s', extra=(
    f'ramp: {RAMP}s',
    'health:',
    f'  confirm_interval: {milliseconds(CONFIRM)}',
    f'  liveness: {{http: "http://{{address}}:{{port}}/", interval: {INTERVAL}s, timeout: {milliseconds(TIMEOUT)}, '
    f'fall: {FALL}, rise: {RISE}}}',
    f'  performance: {{response_time: {milliseconds(BOUND)}, interval: {milliseconds(LOOK)}, fall: {FALL}, '
    f'rise: {RISE}}}',
    'report: {interval: 2s, gas_change: 1%, rate: 10/s}'))
HELD = 30               # connections that stay open through all steps, 10 at each instance
TALKING = 20            # connections that ask again and again while the data plane is killed
AT_ONCE = 8             # connections of the load
BUSY = 10               # seconds that a busy machine may add to anything
FROZEN = 2              # seconds until a frozen data plane is GAS 0


def seconds_of(report):
    return datetime.datetime.fromisoformat(report['timestamp']).timestamp()


def trigger(report):
    return report['trigger'].removeprefix('TRIGGER_')


class WithControl(Part):
    # What the steps are made of

    def set_up(self):
        site = text(self.folder / 'cli.sock', (WEB,), control=self.folder / 'dataplane.sock',
                    bindings=f'{self.memory}/bindings', extra0=('kernel: mg0',), extra1=('kernel: mg1',))
        self.site = site + Control.section(self.folder)
        self.tell('        the same with margay-control: dataplane.control, dataplane.bindings and kernel: in the site '
                  f'file; reports as JSON lines: {self.folder}/reports')
        self.start_data_plane()
        self.start_control()

    def start_data_plane(self):
        self.dataplane = DataPlane(self.net, self.folder, self.site, name='with-control')

    def start_control(self, name='control'):
        self.control = Control(self.net, self.folder, self.dataplane.site, name)

    def reports(self, since=0):
        return self.control.reports()[since:]

    def known(self):
        """How many reports have gone out so far."""
        return len(self.control.reports())

    def table(self):
        return self.dataplane.show('table')

    def row(self, name):
        return next(row for row in self.table()['instances'] if row['si_id'] == name)

    def await_table(self, name, key, value, seconds):
        """Every worker uses a table in which the instance is so; how many seconds that took, None if it did not come
        to it."""
        began = time.monotonic()

        def reached():
            table = self.table()
            row = next(row for row in table['instances'] if row['si_id'] == name)
            return row[key] == value and table['acked'] >= row['generation']

        return round(time.monotonic() - began, 2) if await_(reached, seconds + BUSY) else None

    def transitions(self, name, since):
        """The instance's states by the log, from its byte `since` on."""
        states = re.findall(rf'msg="health changed".* instance="{name}" from=(\w+) to=(\w+)',
                            self.control.log_text()[since:])
        return [states[0][0], *(to for _, to in states)] if states else []

    def held(self):
        """Connections that clients hold open, by the instances' own kernels."""
        return {instance.name: instance.established() for instance in self.instances}

    def await_gas(self, factors=None, since=0, seconds=BUSY):
        """Waits for a report, after the first `since`, of the GAS that D-7 makes of the limits and of the connections
        that the instances count: (whether it came, the last GAS reported, how it is reckoned)."""
        parts, gas = [], 0
        for name, held in self.held().items():
            factor = (factors or {}).get(name, 1)
            limit = int(factor * LIMITS[name])
            gas += max(0, limit - held) if factor else 0
            parts.append(f'{limit} - {held}' if factor else '0')
        came = await_(lambda: [r for r in self.reports(since)[-1:] if r.get('gas') == gas], seconds)
        last = (self.reports() or [{}])[-1].get('gas')
        return bool(came), last, f'{gas} = {" + ".join(parts)}'

    def start_load(self):
        """A load that is under way."""
        before = sum(self.opened().values())
        load = self.load(WEB, '--at-once', AT_ONCE)
        await_(lambda: sum(self.opened().values()) > before + 10 * AT_ONCE, PATIENCE)
        return load

    def end_load(self, load):
        load.send_signal(signal.SIGTERM)
        return self.finish(load)

    def client_flows(self, name):
        return Capture(self.net, name, f'tcp and not host {SITE4}', folder=self.folder)

    @staticmethod
    def begun(packets, since=0.0, until=float('inf')):
        """Connections of clients that began in that time."""
        return len({(p.source_port, p.sequence) for p in packets
                    if p.flags & (SYN | ACK) == SYN and since <= p.time <= until})

    # The steps

    def comes_up(self):
        limit = INTERVAL + RISE * CONFIRM + BUSY
        began = time.monotonic()
        came, gas, reckoned = self.await_gas(seconds=limit)
        took = time.monotonic() - began
        first = (self.reports() or [{}])[0]
        unknown = first.get('health_summary', {}).get('unknown')
        states = {name: self.transitions(name, 0) for name in LIMITS}
        self.step(unknown == 3 and trigger(first) == 'START' and
                  all(s == ['UNKNOWN', 'HEALTHY'] for s in states.values()),
                  f'site up: first report {trigger(first)} with {unknown} of 3 instances UNKNOWN and GAS '
                  f'{first.get("gas")}; probes through the data plane make them HEALTHY after {took:.1f} s, limit '
                  f'{limit:.1f} s', states=states, seconds=took, first=first)
        self.step(came, f'GAS reported {gas}, limit exactly {reckoned}', gas=gas)

    def holds(self):
        since = self.known()
        self.holding = self.load(WEB, '--hold', HELD, '--at-once', 1)
        line = json.loads(self.holding.stdout.readline())
        came, gas, reckoned = self.await_gas(since=since)
        count = sum(self.held().values())
        self.step(came and line['ok'] == count == HELD,
                  f'{line["ok"]} connections held open: GAS reported {gas}, limit exactly {reckoned}', gas=gas,
                  held=self.held())

    def dies(self):
        limit = FALL * INTERVAL + BUSY
        server = self.instances[2]
        capture = self.client_flows('si-3')
        load = self.start_load()
        killed = time.time()
        self.net.stop(server.nginx, signal.SIGKILL)
        took = self.await_table('si-3', 'health', 'UNHEALTHY', limit)
        acked = time.time()
        time.sleep(1)
        result = self.end_load(load)
        packets = capture.stop()
        later = self.begun(packets, acked + SETTLE)
        self.step(took is not None and took <= limit and later == 0 and result['instances'].get('si-3'),
                  f'si-3\'s nginx killed under load: UNHEALTHY and acked by every worker after {took} s, limit '
                  f'{limit} s; connections that began there from {SETTLE} s after the ack: {later}, limit 0',
                  seconds=took, later=later)
        sent = self.begun(packets, killed, acked + SETTLE)
        self.step(result['failed'] <= sent + AT_ONCE,
                  f'{result["failed"]} of {result["ok"] + result["failed"]} requests failed; {sent} were sent to si-3 '
                  f'between kill and ack and up to {AT_ONCE} were open, limit {sent + AT_ONCE}',
                  result=result, sent=sent)
        came, gas, reckoned = self.await_gas({'si-3': 0})
        self.step(came, f'GAS reported {gas}, limit exactly {reckoned}', gas=gas)

    def comes_back(self):
        limit = INTERVAL + 2 * RISE * LOOK
        since, log = self.known(), len(self.control.log_text())
        load = self.start_load()
        self.instances[2] = Instance(self.net, 'si-3', self.folder)
        took = self.await_table('si-3', 'health', 'HEALTHY', limit)
        early = self.share('si-3')
        time.sleep(RAMP)
        late = self.share('si-3')
        result = self.end_load(load)
        states = self.transitions('si-3', log)
        triggers = [trigger(r) for r in self.reports(since)]
        self.step(took is not None and states == ['UNHEALTHY', 'DEGRADED', 'HEALTHY'] and 'RECOVERY' in triggers,
                  f'its nginx started again: {" -> ".join(states)} within {took} s, limit {limit + BUSY} s; reports '
                  f'{", ".join(dict.fromkeys(triggers))}', states=states, seconds=took, triggers=triggers)
        self.step(0 < early < late and late >= 0.3 and result['failed'] == 0,
                  f'its share of new connections {early:.1%} in the first second and {late:.1%} after the ramp of '
                  f'{RAMP} s, limit: less at first, then 30 %; {result["failed"]} of {result["ok"]} requests failed, '
                  f'limit 0{why(result)}', early=early, late=late, result=result)
        came, gas, reckoned = self.await_gas()
        self.step(came, f'GAS reported {gas}, limit exactly {reckoned}', gas=gas)

    def share(self, name):
        """Of the new flows of one second."""
        before = self.opened()
        time.sleep(1)
        new = {key: count - before[key] for key, count in self.opened().items()}
        return new[name] / max(1, sum(new.values()))

    def opened(self):
        return {row['si_id']: row['opened'] for row in self.slots()}

    def slows_down(self):
        limit = (FALL + 1) * LOOK
        log = len(self.control.log_text())
        capture = self.client_flows('si-2')
        load = self.start_load()
        self.instances[1].slow_down(DELAY)
        took = self.await_table('si-2', 'health', 'DEGRADED', limit)
        acked = time.time()
        before = self.opened()
        time.sleep(DELAY + 1)  # until every client that was stuck at si-2 goes on
        others = sum(count - before[name] for name, count in self.opened().items() if name != 'si-2')
        result = self.end_load(load)
        later = self.begun(capture.stop(), acked + SETTLE)
        self.step(took is not None and later == 0 and others > 0 and result['failed'] == 0,
                  f'si-2 takes {milliseconds(DELAY)} to answer, bound {milliseconds(BOUND)}: DEGRADED after {took} s, '
                  f'limit {limit + BUSY} s; connections that began there from {SETTLE} s after the ack: {later}, limit '
                  f'0 (others {others}); {result["failed"]} of {result["ok"]} requests failed, limit 0{why(result)}',
                  seconds=took, later=later, others=others, result=result)
        came, gas, reckoned = self.await_gas({'si-2': FACTOR})
        self.step(came, f'GAS reported {gas}, limit exactly {reckoned}, with {FACTOR} of si-2\'s {LIMITS["si-2"]} '
                  f'rounded down', gas=gas)
        self.instances[1].speed_up()
        limit = (RISE + 1) * LOOK
        took = self.await_table('si-2', 'health', 'HEALTHY', limit)
        states = self.transitions('si-2', log)
        came, gas, reckoned = self.await_gas()
        self.step(took is not None and states == ['HEALTHY', 'DEGRADED', 'HEALTHY'] and came,
                  f'fast again: {" -> ".join(states)} after {took} s, limit {limit + BUSY} s; GAS reported {gas}, '
                  f'limit exactly {reckoned}', states=states, seconds=took, gas=gas)

    def drains(self):
        since, before = self.known(), self.held()['si-1']
        self.order('drain', WEB.csci_id, 'si-1')
        took = self.await_table('si-1', 'admin', 'draining', 0)
        capture = self.client_flows('si-1')
        result = self.finish(self.load(WEB, '--total', 300, '--at-once', AT_ONCE))
        began = self.begun(capture.stop())
        came, gas, reckoned = self.await_gas({'si-1': 0}, since)
        held = self.held()['si-1']
        triggers = [trigger(r) for r in self.reports(since)]
        self.step(took is not None and began == 0 and result['ok'] == 300 and held == before and came and
                  'ADMIN' in triggers,
                  f'si-1 drained by margay-cli: {began} of {result["ok"]} new connections there, limit 0; its {held} '
                  f'sessions live, limit {before}; GAS reported {gas}, limit exactly {reckoned}',
                  began=began, result=result, held=held, gas=gas, triggers=triggers)
        self.order('undrain', WEB.csci_id, 'si-1')
        came, gas, reckoned = self.await_gas()
        self.step(came, f'undrained: GAS reported {gas}, limit exactly {reckoned}', gas=gas)

    def order(self, *words):
        done = self.control.run(*words)
        if done.returncode != 0:
            raise CommandFailed(f'{" ".join(words)}: {done.stderr or done.stdout}')

    def control_dies(self):
        ages = {row['si_id']: row['health_seconds'] for row in self.table()['instances']}
        load = self.start_load()
        self.control.kill()
        since = self.known()
        static = await_(lambda: self.table()['fail_static'], BUSY)
        shown = self.dataplane.command('show', 'table').splitlines()
        said = next((line for line in shown if 'fail-static' in line), '')
        time.sleep(1)
        self.start_control('control2')
        await_(lambda: len(self.reports(since)) >= 2, BUSY)
        result = self.end_load(load)
        self.step(static and said and result['failed'] == 0 and result['ok'] > 0,
                  f'margay-control killed with -9 under load: {result["failed"]} of {result["ok"]} requests failed, '
                  f'limit 0{why(result)}; show table: "{said}"', result=result, said=said)
        new = self.reports(since)
        first = new[0]
        # By the limits and what this same report says of each session.
        reckoned = sum(LIMITS.values()) - sum(i.get('active_sessions', 0) for i in first['instances'])
        least = min(r.get('gas', 0) for r in new)
        later = {row['si_id']: row['health_seconds'] for row in self.table()['instances']}
        reset = self.control.log_text().count('msg="health changed"') + sum(later[n] < ages[n] for n in ages)
        self.step(trigger(first) == 'START' and first['gas'] == reckoned and least > 0 and reset == 0,
                  f'another takes over: first report {trigger(first)} with GAS {first["gas"]}, limit exactly '
                  f'{reckoned} by its sessions; least GAS reported {least}, limit above 0; {reset} states begun anew, '
                  f'limit 0 (ages go on at {min(later.values()):.0f} s)', reports=new, ages=ages, later=later)
        came, gas, reckoned = self.await_gas()
        self.step(came, f'the load ended: GAS reported {gas}, limit exactly {reckoned}', gas=gas)

    def freezes(self):
        since, held = self.known(), self.held()
        frozen = time.time()
        self.dataplane.process.send_signal(signal.SIGSTOP)
        zero = await_(lambda: [r for r in self.reports(since) if r.get('gas') == 0], BUSY)
        took = seconds_of(zero[0]) - frozen if zero else None
        self.dataplane.process.send_signal(signal.SIGCONT)
        came, gas, reckoned = self.await_gas(since=since + 1)
        triggers = [trigger(r) for r in self.reports(since)]
        self.step(took is not None and took <= FROZEN,
                  f'data plane frozen (SIGSTOP): report {trigger(zero[0]) if zero else "none"} with GAS 0 after '
                  f'{took if took is None else round(took, 2)} s, limit {FROZEN} s', seconds=took, triggers=triggers)
        broken = sum(held.values()) - sum(self.held().values())
        self.step(came and 'RECOVERY' in triggers and broken == 0,
                  f'thawed: reports {", ".join(triggers)}; GAS reported {gas}, limit exactly {reckoned}; {broken} of '
                  f'{sum(held.values())} held connections broken, limit 0', gas=gas, broken=broken)

    def start_download(self):
        body = os.urandom(3 << 19)                      # some 6 s
        pathlib.Path(self.folder, 'slow').write_bytes(body)
        download = self.net.start('client', sys.executable, HERE / 'download.py', WEB.address, WEB.port, '/slow',
                                  stdout=subprocess.PIPE, text=True)
        return download, hashlib.sha256(body).hexdigest()

    def data_plane_dies(self):
        before = sum(self.held().values())
        talk = self.load(WEB, '--hold', TALKING, '--talk')
        talk.stdout.readline()
        download, expected = self.start_download()
        load = self.start_load()
        since = self.known()
        slots = self.active()
        began = time.monotonic()
        self.net.stop(self.dataplane.process, signal.SIGKILL)
        self.start_data_plane()
        took = time.monotonic() - began
        image = self.dataplane.show('bindings')['bindings'][0]
        time.sleep(1)
        result = self.end_load(load)
        got = json.loads(download.communicate(timeout=PATIENCE)[0])
        self.net.stop(download)
        talk.stdin.close()
        told = json.loads(talk.stdout.readline())
        self.let_go(talk)
        ended = sum(sum(row['ended'].values()) for row in told.values())
        broken = ended + before - sum(self.held().values())
        whole = got['sha256'] == expected
        self.step(broken == 0 and whole and image['sessions'] > 0,
                  f'data plane killed with -9 under load ({slots} slots held) and started again in {took:.1f} s: '
                  f'{image["sessions"]} sessions taken over; {broken} of {TALKING + before} held connections '
                  f'broken, limit 0; the running download is {"whole" if whole else got}', told=told, download=got,
                  seconds=took, image=image)
        came, gas, reckoned = self.await_gas(since=since)
        self.step(came and result['failed'] == 0,
                  f'{result["failed"]} of {result["ok"]} requests of the load failed, limit 0{why(result)}; GAS '
                  f'reported {gas}, limit exactly {reckoned}', result=result, gas=gas)

    def nothing_left(self):
        self.let_go(self.holding)
        active = self.await_slots()
        complete, differences = await_(lambda: (a := self.dataplane.audit())[0] and a, LAST_TIMER) or (False, 0)
        came, gas, reckoned = self.await_gas()
        self.step(active == 0 and complete and differences == 0 and came,
                  f'at the end {active} slots held, limit 0; audit of all entries: {differences} differences, limit 0; '
                  f'GAS reported {gas}, limit exactly {reckoned}', active=active, differences=differences, gas=gas)

    def end(self):
        statuses = self.control.stop(), self.dataplane.stop()
        last = trigger(self.reports()[-1])
        self.step(statuses == (0, 0) and last == 'STOP',
                  f'margay-control and margay-dataplane ended in order on SIGTERM: exit status {statuses[0]} and '
                  f'{statuses[1]}, last report {last}', statuses=statuses, last=last)

    def run(self):
        self.set_up()
        for step in (self.comes_up, self.holds, self.dies, self.comes_back, self.slows_down, self.drains,
                     self.control_dies, self.freezes, self.data_plane_dies, self.nothing_left, self.end):
            step()
