# SPDX-License-Identifier: Apache-2.0
"""The demo's third part: two SCIs with two CS-IDs, a C-SMA and a C-PS. SCI A and the C-SMA are one margay-control; SCI
B is a site of its own, with a data plane and a margay-control that reports over a management network. What the C-PS
believes is read from `margay-cps`; certificates are of scripts/pki."""
import datetime
import json
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time

import grpc_peer
from control import Control
from cps import Cps
from dataplane import CLI, DataPlane
from demo_part import HERE, Loads, Part, await_
from net import Net
from peers import Instance
from pki import Pki
from site_file import Sci, text

INTERVAL, CONFIRM, FALL, RISE = 1, 0.3, 2, 2            # of liveness
TTL, GRACE = 4, 3                                       # of a silent SCI's capacity
BUSY = 10               # seconds that a busy machine may add to anything
LATE = 2                # ... and to a timer
HELD_A, HELD_B = 30, 12
EXTRA = ('health:',
         f'  confirm_interval: {round(CONFIRM * 1000)}ms',
         f'  liveness: {{http: "http://{{address}}:{{port}}/", interval: {INTERVAL}s, timeout: 900ms, fall: {FALL}, '
         f'rise: {RISE}}}',
         'report: {interval: 1s, gas_change: 0%, rate: 20/s}')
A = Sci(limits=(101, 201, 301), affinity='120s', extra=EXTRA)
B = Sci(address='192.0.2.20', cs_id='VRS', limits=(51, 71), affinity='120s', extra=EXTRA)
C_SMA = f'''\
c_sma:
  identity: edge-1
  listen: {{sci}}:7443
  accept:
    - {{{{csci_id: "{B.csci_id}", cs_id: {B.cs_id}, gas_ceiling: {sum(B.limits)}}}}}
  cache: {{{{ttl: {{{{gas: {TTL}s}}}}, grace: {GRACE}s}}}}
  updates:
    heartbeat: 2s
    minimum_interval: 100ms
    gas_change: 0%
    valid_for: 20s
    backoff: {{{{initial: 200ms, max: 1s}}}}
  c_ps:
    - {{{{protocol: grpc, address: "{{cps}}:7444", identity: cps, cs_ids: [WEB, VRS]}}}}
    - {{{{protocol: grpc, address: "{{far}}:7444", identity: cps-2, cs_ids: [WEB, VRS]}}}}
'''


def unix_time(line):
    """Of a line of a log."""
    return datetime.datetime.fromisoformat(re.match(r'time=(\S+)', line).group(1).replace('Z', '+00:00')).timestamp()


def matching(log, *words):
    """Lines of a log that hold all words."""
    return [line for line in log.splitlines() if all(word in line for word in words)]


class Site(Loads):
    """One SCI: instances, data plane, control plane."""

    def __init__(self, net, folder, instances, sci, control):
        """`control`: what the site file says beside data plane and SCI."""
        folder.mkdir()
        self.net, self.folder, self.instances, self.sci = net, folder, instances, sci
        site = text(folder / 'cli.sock', (sci,), workers=1, control=folder / 'dataplane.sock', extra1=('kernel: mg1',))
        self.dataplane = DataPlane(net, folder, site + control)
        self.runs = 0
        self.start_control()

    def start_control(self):
        self.runs += 1
        self.control = Control(self.net, self.folder, self.dataplane.site, f'control{self.runs}')

    def gas(self, dead=()):
        """By the limits and what the instances' kernels count: (GAS, how it is reckoned)."""
        parts, gas = [], 0
        for server, limit in zip(self.instances, self.sci.limits):
            held = 0 if server.name in dead else server.established()
            parts.append('0' if server.name in dead else f'{limit} - {held}')
            gas += 0 if server.name in dead else limit - held
        return gas, f'{gas} = {" + ".join(parts)}'

    def active(self, name):
        """Sessions of an instance by the data plane."""
        return next(row['active'] for row in self.dataplane.show('slots')['slots'] if row['si_id'] == name)

    def hold(self, count):
        load = self.load(self.sci, '--hold', count, '--at-once', 1)
        return load, json.loads(load.stdout.readline())['ok']

    def audit(self):
        """Lines of the C-SMA's audit log."""
        return [json.loads(line) for line in (self.folder / 'state' / 'audit.jsonl').read_text().splitlines()]

    def refusals(self, word, since):
        """Audited ones that name the reason."""
        return [line for line in self.audit()[since:] if line['kind'] == 'REFUSED' and line['detail'].startswith(word)]

    def stop(self):
        return self.control.stop(), self.dataplane.stop()

    def kill(self):
        for process in (self.control.process, self.dataplane.process):
            self.net.stop(process, signal.SIGKILL)


class Watch(threading.Thread):
    """The C-PS's table again and again, as fast as it answers, from the first sight until end(): (Unix time, rows)."""

    def __init__(self, part):
        super().__init__(daemon=True)
        self.part, self.seen, self.going = part, [], True
        self.start()

    def run(self):
        while self.going:
            table = self.part.table()
            self.seen.append((time.time(), table))

    def end(self):
        self.going = False
        self.join()
        return self.seen


class Cats(Part):
    # What the steps are made of

    def set_up(self):
        self.folder = self.folder / 'cats'
        self.folder.mkdir()
        self.net_b = Net(2, 'b')
        (self.folder / 'b-servers').mkdir()
        servers_b = [Instance(self.net_b, name, self.folder / 'b-servers') for name in self.net_b.instances]
        self.at = self.net.manage('sci', 'cps', 'b.sci', 'far')
        self.pki, self.others = Pki(self.folder / 'pki'), Pki(self.folder / 'other-pki')
        for words in (('c-sma', 'edge-1'), ('c-ps', 'cps'), ('signing-key', 'k1'), ('c-ps', 'cps-3'),
                      ('sci', 'sci-b', f'{B.cs_id}={B.csci_id}'), ('sci', 'sci-c', f'{B.cs_id}=192.0.2.66:80')):
            self.pki.run(*words)
        for words in (('sci', 'sci-b', f'{B.cs_id}={B.csci_id}'), ('c-ps', 'cps-2')):
            self.others.run(*words)
        self.cps = Cps(self.net, self.folder, self.pki, self.c_smas(), f'{self.at["cps"]}:7444',
                       state=self.folder / 'cps-state')
        a, b = self.folder / 'a', self.folder / 'b'
        self.a = Site(self.net, a, self.instances, A, Control.section(a, role='both') +
                      self.pki.section('edge-1', 'k1') + C_SMA.format(**self.at))
        self.b = Site(self.net_b, b, servers_b, self.reporting(B), Control.section(b) + self.pki.section('sci-b'))
        self.tell('        SCI A and the C-SMA in one margay-control; SCI B with a site of its own; margay-cps; mutual '
                  f'TLS between them; site files: {a}, {b}')

    def reporting(self, sci):
        """The SCI as one that reports to the C-SMA."""
        to = f'reports_to: {{address: "{self.at["sci"]}:7443", identity: edge-1}}'
        return Sci(**{**vars(sci), 'extra': (*sci.extra, to)})

    def c_smas(self):
        return {'edge-1': ({'k1': self.pki.file('k1.sign.pub')}, ['WEB', 'VRS'])}

    def table(self):
        """What the C-PS believes; nothing where it does not answer."""
        done = self.cps.run('show', 'table', '--json')
        rows = json.loads(done.stdout)['rows'] if done.returncode == 0 else []
        return {(r['cs_id'], r['csci_id']): r for r in rows}

    def versions(self):
        """By the C-SMA and by the C-PS: {(CS-ID, CSCI-ID): (epoch, commit, GAS)}"""
        told = {(r['cs_id'], r['csci_id']): r for r in self.a.control.show('site')['rows']}
        return [{key: (r['epoch'], r['commit'], r['gas']) for key, r in rows.items()} for rows in (told, self.table())]

    def believed(self, site):
        """GAS at the C-PS, of the SCI and of its CS-ID as a whole; the second only where the SCI is gone."""
        table = self.table()
        return tuple(table[key]['gas'] for key in ((site.sci.cs_id, site.sci.csci_id), (site.sci.cs_id, None))
                     if key in table)

    def await_gas(self, site, dead=(), seconds=BUSY):
        """Waits until the C-PS believes what the kernels say: (whether it does, what it believes, the reckoning)."""
        gas, reckoned = site.gas(dead)
        came = await_(lambda: self.believed(site) == (gas, gas), seconds)
        return bool(came), self.believed(site), reckoned

    def source(self, column, csci_id=B.csci_id):
        return next(r for r in self.a.control.show('sources')['sources'] if r['csci_id'] == csci_id)[column]

    def changes(self, to, since):
        """When SCI B's source state has changed so, by the C-SMA's log from its byte `since` on."""
        return [unix_time(line) for line in matching(self.a.control.log_text()[since:], 'msg="source changed"',
                                                     f'csci_id="{B.csci_id}"', f'to={to}')]

    # The steps

    def comes_up(self):
        limit = INTERVAL + RISE * CONFIRM + BUSY
        began = time.monotonic()
        for site in (self.a, self.b):
            came, gas, reckoned = self.await_gas(site, seconds=limit)
            took = time.monotonic() - began
            self.step(came, f'{site.sci.cs_id}: GAS at the C-PS {gas} for SCI and site after {took:.1f} s, limit '
                      f'exactly {reckoned} within {limit:.1f} s', gas=gas, seconds=took)

    def counts(self):
        self.loads = {}
        for site, count in ((self.a, HELD_A), (self.b, HELD_B)):
            self.loads[site], held = site.hold(count)
            came, gas, reckoned = self.await_gas(site)
            self.step(came and held == count == sum(server.established() for server in site.instances),
                      f'{site.sci.cs_id}: {held} connections held open: GAS at the C-PS {gas} for SCI and site, limit '
                      f'exactly {reckoned}', gas=gas, held=held)

    def instance_dies(self):
        limit = FALL * INTERVAL + 1
        expected = self.a.gas(dead=('si-3',))[0]
        self.net.stop(self.instances[2].nginx, signal.SIGKILL)
        killed = time.monotonic()
        came = await_(lambda: self.believed(self.a) == (expected, expected), limit + BUSY)
        took = time.monotonic() - killed
        gas, reckoned = self.believed(self.a), self.a.gas(dead=('si-3',))[1]
        self.step(came and took <= limit, f'an nginx killed: GAS at the C-PS {gas} after {took:.2f} s, limit exactly '
                  f'{reckoned} within detection ({FALL} checks of {INTERVAL} s) and 1 s', seconds=took, gas=gas)
        await_(lambda: self.a.active('si-3') == 0, BUSY)      # its sessions are reset
        self.instances[2] = Instance(self.net, 'si-3', self.folder.parent)
        came, gas, reckoned = self.await_gas(self.a)
        self.step(came, f'its nginx started again: GAS at the C-PS {gas}, limit exactly {reckoned}', gas=gas)

    def c_ps_dies(self):
        self.cps.kill()
        await_(lambda: self.a.control.show('c-ps')['c_ps'][0]['state'] == 'away', BUSY)
        since = len(self.a.audit())
        status = self.b.control.stop()
        gone = await_(lambda: [line for line in self.a.audit()[since:]
                               if (line['kind'], line['what']) == ('DEREGISTERED', B.csci_id)], BUSY)
        self.a.let_go(self.loads.pop(self.a))
        await_(lambda: self.versions()[0].get(('WEB', None), (0, 0, 0))[2] == sum(A.limits), BUSY)
        self.cps.start()
        equal = await_(lambda: (v := self.versions())[0] == v[1] and v, BUSY)
        told, believed = equal or self.versions()
        newest = ", ".join(f'{cs_id} {max(v[1] for key, v in told.items() if key[0] == cs_id)}'
                           for cs_id in ('WEB', 'VRS'))
        self.step(status == 0 and gone and (B.cs_id, B.csci_id) not in told,
                  f'C-PS killed; meanwhile SCI B\'s control plane ended in order: withdrawn as '
                  f'{"DEREGISTERED" if gone else "silent"}, limit DEREGISTERED', audit=gone, status=status)
        self.step(equal and believed[('WEB', None)][2] == sum(A.limits) and believed[('VRS', None)][2] == 0,
                  f'... and {HELD_A} connections at SCI A closed. C-PS back: its {len(believed)} rows and '
                  f'their versions (commits: {newest}) are those of the C-SMA; GAS of the site: WEB '
                  f'{believed.get(("WEB", None), "?")[2]}, VRS {believed.get(("VRS", None), "?")[2]}, limit '
                  f'{sum(A.limits)} and 0', told=str(told), believed=str(believed))
        self.b.start_control()
        came, gas, reckoned = self.await_gas(self.b)
        self.step(came, f'SCI B back: GAS at the C-PS {gas}, limit exactly {reckoned}', gas=gas)

    def c_sma_dies(self):
        before = self.table()
        epoch = before[('WEB', None)]['epoch']
        watch = Watch(self)
        self.a.control.kill()
        killed = time.monotonic()
        self.a.start_control()
        joined = await_(lambda: self.table().get(('WEB', None), {'epoch': 0})['epoch'] > epoch, 2 * BUSY)
        back = await_(lambda: self.source('state') == 'HEALTHY', BUSY)
        equal = await_(lambda: (v := self.versions())[0] == v[1], BUSY)
        took = time.monotonic() - killed
        time.sleep(1)
        seen = watch.end()
        missing = sum(1 for _, rows in seen if not before.keys() <= rows.keys())
        zero = sum(1 for _, rows in seen if any(r['gas'] == 0 for r in rows.values()))
        self.step(joined and back and equal and missing == zero == 0,
                  f'C-SMA killed with -9 and back: SCI B reports to it and the tables are equal {took:.1f} s later; of '
                  f'{len(seen)} looks at the C-PS {missing} without a row of a live SCI, limit 0, {zero} with a GAS of '
                  f'0, limit 0', seconds=took, looks=len(seen), missing=missing, zero=zero)

    def sci_dies(self):
        since = len(self.a.control.log_text())
        key, site = (B.cs_id, B.csci_id), (B.cs_id, None)
        watch = Watch(self)
        self.b.control.kill()
        killed = time.time()
        stale, failed = (await_(lambda state=state: self.changes(state, since), wait + BUSY)
                         for state, wait in (('STALE', TTL), ('FAILED', GRACE)))
        await_(lambda: key not in watch.seen[-1][1], BUSY)
        time.sleep(0.5)
        seen = watch.end()
        last = unix_time(f'time={self.b.control.reports()[-1]["timestamp"]}')
        silent, grace = (round(t, 2) if t else None for t in
                         (stale and stale[0] - last, stale and failed and failed[0] - stale[0]))
        self.step(silent and TTL - 0.1 <= silent <= TTL + LATE and grace and GRACE - 0.1 <= grace <= GRACE + LATE,
                  f'SCI B killed with -9: STALE {silent} s after its last report, limit {TTL} s, FAILED {grace} s '
                  f'later, limit {GRACE} s (up to {LATE} s late)', silent=silent, grace=grace, killed=killed - last)
        gone = next((at for at, rows in seen if key not in rows), None)
        took = gone and failed and round(gone - failed[0], 2)
        apart = [at for at, rows in seen if (key in rows) != (rows.get(site, {'gas': None})['gas'] != 0)]
        message = matching(self.a.control.log_text()[since:], 'msg="advertised"', 'cs_id="VRS"', 'withdrawn=1')
        self.step(took is not None and took <= 1 and not apart and len(message) == 1 and ' rows=1 ' in message[0],
                  f'its row gone at the C-PS {took} s later, limit 1 s; the site\'s row down to GAS 0 in the same '
                  f'message: of {len(seen)} looks {len(apart)} showed one without the other, limit 0', seconds=took,
                  looks=len(seen), apart=len(apart), message=message)
        self.b.start_control()
        came, gas, reckoned = self.await_gas(self.b)
        self.step(came, f'SCI B back: GAS at the C-PS {gas}, limit exactly {reckoned}', gas=gas)

    # Impostors: each is refused by name, and SCI B's capacity stands meanwhile.

    def impostor_sci(self, security, name):
        folder = self.folder / name
        folder.mkdir()
        site = folder / 'site.yaml'
        site.write_text(text(folder / 'cli.sock', (self.b.sci,), control=folder / 'dataplane.sock') +
                        Control.section(folder) + security)
        return Control(self.net, folder, site, namespace='far')

    def impostor_scis(self):
        for name, security, who, what in (
                ('another-ca', self.others.section('sci-b', believes=self.pki), 'of another CA', 'unknown_ca'),
                ('another-name', self.pki.section('sci-c'), 'that names another CSCI-ID', 'NOT_IN_CERTIFICATE')):
            since = len(self.a.audit())
            impostor = self.impostor_sci(security, name)
            audited = await_(lambda since=since, what=what: self.a.refusals(what, since), BUSY)
            told = impostor.show('reports-to')['reports_to'][0]
            impostor.kill()
            self.refused(audited, f'an impostor of SCI B with a certificate {who}: refused as {what}', audit=audited,
                         told=told)

    def refused(self, named, what, **numbers):
        gas, reckoned = self.b.gas()
        held = self.believed(self.b) == (gas, gas) and self.source('state') == 'HEALTHY'
        self.step(named and held, f'{what}{"" if named else ": NOT NAMED"}; SCI B stays HEALTHY, GAS at the C-PS '
                  f'{self.believed(self.b)}, limit exactly {reckoned}', **numbers)

    def replay(self):
        old = self.b.control.reports()[-1]
        message = grpc_peer.report(old['csci_id'], old['cs_id'], int(old['epoch']), int(old['sequence']), 4,
                                   at=unix_time(f'time={old["timestamp"]}'), health=(2, 0, 0, 0))
        files = [self.pki.file(name) for name in ('ca.pem', 'sci-b.pem', 'sci-b.key')]
        done = self.net.run('far', sys.executable, HERE / 'grpc_peer.py', self.at['sci'], 7443, *files,
                            input=message.hex() + '\n')
        answer = json.loads(done.stdout.splitlines()[0])
        self.refused(answer.get('verdict') == 'REFUSED' and answer['reason'] in ('DUPLICATE', 'OLD_SEQUENCE'),
                     f'SCI B\'s report {old["sequence"]} sent once more, by its certificate and with GAS 4 in it: '
                     f'{answer.get("verdict")} {answer.get("reason")}', answer=answer)

    def impostor_c_pses(self):
        for identity, security, who, what in (
                ('cps-2', self.others.section('cps-2', believes=self.pki), 'a certificate of another CA', 'unknown_ca'),
                ('cps-3', self.pki.section('cps-3'), 'another\'s certificate', 'wrong_name')):
            impostor = Cps(self.net, self.folder, self.pki, self.c_smas(), f'{self.at["far"]}:7444', identity, 'far',
                           f'impostor-{identity}', security=security)
            self.a.control.command('reconnect')

            def row():
                return next(r for r in self.a.control.show('c-ps')['c_ps'] if r['c_ps'] == 'cps-2')

            named = await_(lambda what=what, row=row: what in (row()['why'] or ''), BUSY)
            now, heard = row(), impostor.show('sessions')['c_smas'][0]['messages']
            impostor.kill()
            self.step(named and now['sent'] == heard == 0 and now['state'] == 'away',
                      f'an impostor C-PS with {who}: the C-SMA refuses it as {what if named else now["why"]}; messages '
                      f'sent to it {heard}, limit 0', row=now, heard=heard)

    def revoked(self):
        since, log = len(self.a.audit()), len(self.a.control.log_text())
        self.pki.run('revoke', 'sci-b')
        revoked = time.monotonic()
        gone = await_(lambda: (B.cs_id, B.csci_id) not in self.table(), BUSY)
        took = time.monotonic() - revoked
        audited = await_(lambda: self.a.refusals('certificate_revoked', since), BUSY)
        why = await_(lambda: self.b.control.show('reports-to')['reports_to'][0]['why'], BUSY)
        line = matching(self.a.control.log_text()[log:], 'msg="source changed"', B.csci_id)
        self.step(gone and audited and took <= 5,
                  f'SCI B\'s certificate revoked: withdrawn at the C-PS after {took:.1f} s, limit 5 s, and turned away '
                  f'as {"certificate_revoked" if audited else why}', audit=audited, why=why, log=line, seconds=took)

    def end(self):
        for load in self.loads.values():
            self.b.let_go(load)
        statuses = [*self.b.stop(), *self.a.stop(), self.cps.stop()]
        done = subprocess.run([CLI, '--json', 'audit', 'verify', self.a.folder / 'state' / 'audit.jsonl'], text=True,
                              capture_output=True, timeout=30)
        lines = len(self.a.audit())
        whole = done.returncode == 0 and json.loads(done.stdout)['lines'] == lines
        self.step(whole, f'margay-cli audit verify: {lines} lines, {"whole" if whole else done.stdout + done.stderr}',
                  status=done.returncode)
        self.step(statuses == [0] * 5, f'all ended in order on SIGTERM: exit statuses {statuses}', statuses=statuses)

    def run(self):
        self.set_up()
        try:
            for step in (self.comes_up, self.counts, self.instance_dies, self.c_ps_dies, self.c_sma_dies, self.sci_dies,
                         self.impostor_scis, self.replay, self.impostor_c_pses, self.revoked, self.end):
                step()
        finally:
            self.net_b.close()
