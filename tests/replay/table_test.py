# SPDX-License-Identifier: Apache-2.0
"""margay-dataplane replay --table: table_test.py BINARY [unittest's arguments]. A recorded change is in force for the
first packet of its time, and for none before it, whatever the number of workers."""

import collections
import filecmp
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import packets as p
import scenario
from recorded import Recording, instance, sci
from scenario import MS, START

SITE = pathlib.Path(__file__).resolve().parent / "site.yaml"
WORKERS = (1, 2, 8)
VIP = p.address("192.0.2.10")
FILES = ("counters.json", "decisions.jsonl", "net0.pcap", "net1.pcap", "net2.pcap")
BALANCES = ("round-robin", "least-connections", "weighted-response-time", "resource-aware", "slot-based",
            "consistent-hash")
binary = None


def web(n, **more):
    return instance(n - 1, f"web-{n}", f"10.1.0.1{n}", **more)


def segment(at, client, flags, sequence=1000):
    """Of a client, on its way in; `client` is a number from 0."""
    source, port = p.address(f"198.51.100.{client % 250 + 1}"), 10_000 + client // 250
    packet = p.tcp(source, VIP, (port, 80), sequence, 1 if flags & p.ACK else 0, flags)
    return START + int(at * MS), p.ethernet(scenario.FORWARDER, scenario.PORT_MAC["net0"], 0x0800, packet)


class TableTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.base = pathlib.Path(self.directory.name)
        self.capture, self.table = self.base / "net0.pcap", self.base / "table.jsonl"

    def start(self, out, *arguments):
        return subprocess.run([binary, "replay", "--config", SITE, "--in", f"net0={self.capture}", "--table",
                               self.table, "--assume-neighbours", "--out", self.base / out, *arguments],
                              capture_output=True, text=True, timeout=120)

    def replay(self, workers, *arguments):
        """(packets' lines, ended lines, counters); twice, to the same bytes."""
        out = str(workers)
        for name in (out, out + "-again"):
            done = self.start(name, "--workers", out, *arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        same, _, _ = filecmp.cmpfiles(self.base / out, self.base / f"{out}-again", FILES, shallow=False)
        self.assertEqual(sorted(same), sorted(FILES))
        lines = [json.loads(line) for line in (self.base / out / "decisions.jsonl").read_text().splitlines()]
        counters = json.loads((self.base / out / "counters.json").read_text())
        return ([line for line in lines if "packet" in line], [line for line in lines if "ended" in line], counters)

    def each(self, frames, recording, *arguments):
        p.write_pcap(self.capture, sorted(frames, key=lambda f: f[0]), nanoseconds=True)
        recording.write(self.table)
        return [self.replay(workers, *arguments) for workers in WORKERS]

    def destinations(self, workers):
        frames = p.read_pcap(self.base / str(workers) / "net1.pcap")
        return [read.destination for read in (p.read_frame(*frame) for frame in frames) if read]


class Changes(TableTest):
    def test_health_holds_from_the_first_packet_of_its_time_on(self):
        """web-2 alone serves, then web-1 alone, then both are UNHEALTHY."""
        frames = [segment(at, n, p.SYN) for n, at in enumerate([5, 19.999_999, 20, 20.000_001, 39.999_999, 40, 45])]
        recording = Recording(sci(web(1, health="UNHEALTHY"), web(2)))
        recording.snapshot(20, sci(web(1), web(2, health="UNHEALTHY")))
        recording.snapshot(40, sci(web(1, health="UNHEALTHY"), web(2, health="UNHEALTHY")))
        for packets, ended, _ in self.each(frames, recording):
            self.assertEqual([line.get("instance") for line in packets],
                             ["web-2", "web-2", "web-1", "web-1", "web-1", None, None])
            self.assertEqual([line.get("reason") for line in packets[5:]], ["no_healthy_instance"] * 2)
            told = {(line["instance"], line["time"][-9:-6], line["reason"]) for line in ended}
            self.assertEqual({(name, reason) for name, _, reason in told},
                             {("web-1", "unhealthy"), ("web-2", "unhealthy")})
            for name, millisecond, _ in told:  # the walk over all bindings takes some ticks of 10 ms
                self.assertGreaterEqual(int(millisecond), 20 if name == "web-2" else 40)

    def test_a_drained_instance_keeps_its_sessions_until_the_deadline(self):
        """By the operator, then by the control plane; deadlines are of the recording's clock, in ticks of 10 ms."""
        for how in ("operator", "control"):
            frames = [segment(10, 0, p.SYN), segment(30, 1, p.SYN), segment(500, 0, p.SYN), segment(1018, 0, p.SYN),
                      segment(1045, 0, p.SYN, 9000)]
            recording = Recording(sci(web(1), web(2, health="UNHEALTHY")))
            deadline = START + 1020 * MS
            if how == "operator":
                recording.snapshot(20, sci(web(1), web(2)))
                recording.set(20, "web-1", admin="draining", drain_deadline=deadline)
            else:
                recording.snapshot(20, sci(web(1, admin="draining", drain_deadline=deadline), web(2)))
            for packets, ended, _ in self.each(frames, recording):
                self.assertEqual([(line["instance"], line["binding"]) for line in packets],
                                 [("web-1", "new"), ("web-2", "new"), ("web-1", "entry"), ("web-1", "entry"),
                                  ("web-2", "new")], how)
                drained = [line for line in ended if line["instance"] == "web-1"]
                self.assertEqual([line["reason"] for line in drained], ["drained"])
                self.assertGreater(drained[0]["time"], f"{deadline // 10**9}.{deadline % 10**9:09}")

    def test_what_an_operator_sets_holds_until_it_is_cleared(self):
        frames = [segment(at, at, p.SYN) for at in (10, 20, 30, 40, 50)]
        recording = Recording(sci(web(1), web(2, health="UNHEALTHY")),
                              set=[{"csci_id": "192.0.2.10:80", "si_id": "web-1", "weight": 0}])
        recording.set(20, "web-1")                                        # cleared
        recording.set(30, "web-1", max_sessions=1)                        # has one
        recording.snapshot(40, sci(web(1, max_sessions=900, limit=900), web(2, health="UNHEALTHY")))  # does not count
        recording.set(50, "web-1", max_sessions=2)
        for packets, _, _ in self.each(frames, recording):
            self.assertEqual([line.get("instance", line.get("reason")) for line in packets],
                             ["no_healthy_instance", "web-1", "no_free_slot", "no_free_slot", "web-1"])

    def test_each_balance_gives_everybody_a_share(self):
        frames = [segment(10 + n / 10, n, p.SYN) for n in range(240)]
        for balance in BALANCES:
            for packets, _, _ in self.each(frames, Recording(sci(web(1), web(2), web(3), balance=balance))):
                taken = collections.Counter(line["instance"] for line in packets)
                self.assertEqual(sum(taken.values()), 240, balance)
                if balance == "consistent-hash":  # binomial: 80 +/- 6 sigma
                    self.assertTrue(all(36 <= n <= 124 for n in taken.values()), taken)
                else:
                    self.assertTrue(all(abs(n - 80) <= 8 for n in taken.values()), (balance, taken))

    def test_consistent_hash_is_the_same_for_all_and_moves_what_it_must(self):
        """Whatever the workers and the secret; web-2 goes and comes again between flows of the same clients."""
        rounds = [[segment(at + n / 10, n, p.SYN) for n in range(120)] for at in (10, 10_000, 20_000)]
        one, other = web(1), web(2)
        recording = Recording(sci(one, other, web(3), balance="consistent-hash"))
        recording.snapshot(9_990, sci(one, other | {"weight": 0}, web(3), balance="consistent-hash"))
        recording.snapshot(19_990, sci(one, other, web(3), balance="consistent-hash"))
        seen = set()
        for seed in ("1", "2"):
            for packets, _, _ in self.each(sum(rounds, []), recording, "--seed", seed):
                names = [line["instance"] for line in packets]
                before, without, after = names[:120], names[120:240], names[240:]
                self.assertEqual(after, before)
                self.assertEqual([n for n in without if n == "web-2"], [])
                self.assertTrue(all(a == b for a, b in zip(before, without) if a != "web-2"))
                seen.add(tuple(names))
        self.assertEqual(len(seen), 1)

    def test_resource_aware_goes_by_the_load_while_it_is_fresh(self):
        """0.9 against 0.5 of 1000 slots: all to web-2; 2 s later nothing is known, and web-1 has the fewest."""
        load = {"load_until": START + 2_000 * MS, "load_lifetime": 2}
        frames = [segment(at + n / 10, n + at, p.SYN) for at in (10, 2_100) for n in range(100)]
        recording = Recording(sci(web(1, load=0.9, **load), web(2, load=0.5, **load), balance="resource-aware",
                                  **{"timers.embryonic": 60}))
        for packets, _, _ in self.each(frames, recording):
            names = [line["instance"] for line in packets]
            self.assertEqual(set(names[:100]), {"web-2"})
            self.assertEqual(set(names[100:]), {"web-1"})

    def test_a_preferred_instance_takes_all_that_it_can(self):
        frames = [segment(10 + n, n, p.SYN) for n in range(5)]
        recording = Recording(sci(web(1), web(2, preference=101, max_sessions=3, limit=3)))
        for packets, _, _ in self.each(frames, recording):
            self.assertEqual([line["instance"] for line in packets], ["web-2"] * 3 + ["web-1"] * 2)

    def test_stop_and_start(self):
        frames = [segment(at, at, p.SYN) for at in (10, 20, 30, 40)]
        recording = Recording(sci(web(1)), forwarding=False)
        recording.add(20, forwarding=True).add(30, forwarding=False).add(40, forwarding=True)
        for packets, _, counters in self.each(frames, recording):
            self.assertEqual([line.get("instance", line.get("reason")) for line in packets],
                             ["stopped", "web-1", "stopped", "web-1"])
            self.assertEqual(counters["drops"]["stopped"], 2)

    def test_before_the_first_snapshot_flows_are_refused(self):
        frames = [segment(at, at, p.SYN) for at in (10, 20)]
        recording = Recording(waiting=True)
        recording.snapshot(20, sci(web(1), web(2)), base=0)
        recording.lines[1]["snapshot"]["generation"] = 1
        for packets, _, _ in self.each(frames, recording):
            self.assertEqual(packets[0]["reason"], "no_snapshot")
            self.assertIn(packets[1]["instance"], ("web-1", "web-2"))

    def test_an_index_may_be_anothers_later(self):
        """web-1 leaves, and web-3 gets its index: each is named and counted on its own. Also where the walk over all
        bindings has not ended web-1's by then: in the data plane it had, or the snapshot had been refused."""
        for left in (500, 995):
            frames = [segment(10 + n, n, p.SYN) for n in range(5)] + [segment(left + 2, 50, p.SYN)]
            frames += [segment(1000 + n, 100 + n, p.SYN) for n in range(3)]
            recording = Recording(sci(web(1), web(2, health="UNHEALTHY")))
            recording.snapshot(left, sci(web(2, health="UNHEALTHY")))
            recording.snapshot(1000, sci(instance(0, "web-3", "10.1.0.13", generation=2),
                                         web(2, health="UNHEALTHY")))
            for packets, ended, counters in self.each(frames, recording):
                self.assertEqual([line.get("instance") for line in packets], ["web-1"] * 5 + [None] + ["web-3"] * 3)
                sums = {}
                for line in ended:
                    sums[line["instance"]] = sums.get(line["instance"], 0) + line["ended"]
                self.assertEqual(sums, {"web-1": 5, "web-3": 3})
                told = {(i["instance"], i["index"], i["generation"]): (i["opened"], sum(i["ended"].values()))
                        for i in counters["instances"]}
                self.assertEqual(told, {("web-1", 0, 1): (5, 5), ("web-3", 0, 2): (3, 3), ("web-2", 1, 1): (0, 0)})
                self.assertEqual(self.destinations(counters["workers"])[-3:], ["10.1.0.13"] * 3)

    def test_an_sci_may_be_anothers_later(self):
        """The same for the index of an SCI: refusals are by name."""
        other = sci(web(1, generation=2, health="UNHEALTHY"), csci_id="192.0.2.11:80",
                    endpoints=[{"address": "192.0.2.11", "port": 80, "protocol": "tcp"}])
        frames = [segment(10, 0, p.SYN), segment(20, 1, p.SYN)]
        source = p.address("198.51.100.9")
        to_other = p.tcp(source, p.address("192.0.2.11"), (10_000, 80), 1, 0, p.SYN)
        frames.append((START + 900 * MS, p.ethernet(scenario.FORWARDER, scenario.PORT_MAC["net0"], 0x0800, to_other)))
        recording = Recording(sci(web(1, health="UNHEALTHY")))
        recording.snapshot(500, removed=[0]).snapshot(800, other)
        for packets, _, counters in self.each(frames, recording):
            self.assertEqual([line["sci"] for line in packets], ["192.0.2.10:80"] * 2 + ["192.0.2.11:80"])
            refused = {name: causes["no_healthy_instance"] for name, causes in counters["refused"].items()}
            self.assertEqual(refused, {"192.0.2.10:80": 2, "192.0.2.11:80": 1})
            self.assertEqual([(i["sci"], i["instance"], i["generation"]) for i in counters["instances"]],
                             [("192.0.2.10:80", "web-1", 1), ("192.0.2.11:80", "web-1", 2)])

    def test_changes_after_the_last_packet_are_made_while_timers_run(self):
        recording = Recording(sci(web(1)))
        recording.set(1000, "web-1", admin="disabled")
        for _, ended, _ in self.each([segment(10, 0, p.SYN)], recording):
            self.assertEqual([line["reason"] for line in ended], ["disabled"])
        for _, ended, counters in self.each([segment(10, 0, p.SYN)], recording, "--no-drain"):
            self.assertEqual((ended, counters["totals"]["slots"]), ([], 1))


class WrongLines(TableTest):
    def error(self, recording):
        p.write_pcap(self.capture, [segment(100, 0, p.SYN)])
        if recording is not None:
            recording.write(self.table)
        done = self.start("wrong")
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        return done.stderr.removeprefix("margay-dataplane replay: ").rstrip("\n")

    def test_each_names_its_line_and_what_was_expected(self):
        good = Recording(sci(web(1)))
        first, second = f"{self.table}:1: ", f"{self.table}:2: "
        self.assertEqual(self.error(None), f"{self.table}: No such file or directory")
        self.table.write_text("")
        self.assertEqual(self.error(None), f"{self.table}: is empty, expected a recorded table")
        self.table.write_text("[]\n")
        self.assertEqual(self.error(None), first + "expected one JSON object")

        def with_second(**what):
            return self.error(Recording(sci(web(1))).add(10, **what))

        self.assertEqual(with_second(), second + "forwarding: is missing, expected true or false")
        self.assertEqual(with_second(forwarding=1), second + "forwarding: 1, expected true or false")
        self.assertEqual(with_second(forwarding=True, more=1), second + '"more": there is no such field here')
        self.assertEqual(with_second(instance={"csci_id": "192.0.2.10:80", "si_id": "web-9"}),
                         second + "instance: the table has no 192.0.2.10:80 web-9 then")
        draining = {"csci_id": "192.0.2.10:80", "si_id": "web-1", "admin": "draining"}
        self.assertEqual(with_second(instance=draining),
                         second + "192.0.2.10:80 web-1: drain_deadline is missing, expected beside draining")
        self.assertEqual(with_second(**good.lines[0]), f"{self.table}:2: state: expected in the first line only")
        later = Recording(sci(web(1))).add(10, forwarding=False).add(9, forwarding=True)
        self.assertEqual(self.error(later), f"{self.table}:3: time: {START + 9 * MS}, expected at least "
                                            f"{START + 10 * MS}, of the line before")
        no_state = Recording().add(1, forwarding=True)
        del no_state.lines[0]
        self.assertEqual(self.error(no_state), first + "state: is missing, expected in the first line")
        self.assertEqual(self.error(Recording(sci(web(1))).snapshot(10, sci(web(1, health="SICK")))),
                         second + 'snapshot.scis[0].instances[0].health: "SICK", '
                                  'expected HEALTHY, DEGRADED, UNHEALTHY or UNKNOWN')
        self.assertEqual(self.error(Recording(sci(web(1))).snapshot(10, sci(web(1)), base=7)),
                         second + "base: 7, expected below the generation 2")
        self.assertEqual(self.error(Recording(sci(web(1))).snapshot(10, sci(instance(0, "web-1", "10.1.0.99")))),
                         second + "scis[192.0.2.10:80].instances[web-1]: index 0 is web-1's in generation 1, "
                                  "expected a higher one for another instance")

    def test_a_recording_of_another_site_is_refused_by_name(self):
        first = f"{self.table}:1: state.ports"

        def changed(change):
            recording = Recording(sci(web(1)))
            change(recording.lines[0]["state"]["ports"])
            return self.error(recording)

        self.assertEqual(changed(lambda ports: ports[2].update(name="net7")),
                         f"{first}[2]: net7, expected net2, as in {SITE}")
        self.assertEqual(changed(lambda ports: ports.pop()), f"{first}[2]: is missing, expected net2, as in {SITE}")
        self.assertEqual(changed(lambda ports: ports.append({"name": "net3", "mac": "02:00:00:00:00:09",
                                                             "addresses": []})),
                         f"{first}[3]: net3, expected no such port, as in {SITE}")
        self.assertEqual(changed(lambda ports: ports[2].update(addresses=[])),
                         f"{first}[2]: net2 had no address, expected 10.2.0.2/24, as in {SITE}")
        self.assertEqual(changed(lambda ports: ports[1].update(mac="02:00:00:00:00:09")),
                         f"{first}[1]: net1 had 02:00:00:00:00:09, expected 02:00:00:00:1f:01, as in {SITE}")

    def test_the_recording_is_never_overwritten(self):
        p.write_pcap(self.capture, [segment(100, 0, p.SYN)])
        (self.base / "out").mkdir()
        self.table = Recording(sci(web(1))).write(self.base / "out" / "decisions.jsonl")
        done = self.start("out")
        self.assertEqual(done.returncode, 1)
        self.assertIn("decisions.jsonl: is an input of this replay, choose another --out", done.stderr)


if __name__ == "__main__":
    binary = sys.argv.pop(1)
    unittest.main()
