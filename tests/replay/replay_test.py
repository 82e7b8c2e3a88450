# SPDX-License-Identifier: Apache-2.0
"""margay-dataplane replay, from captures to captures: replay_test.py BINARY [unittest's arguments].
Expectations come from what scenario.py sent and from the RFCs; MARGAY_SEED chooses other random traffic."""

import collections
import filecmp
import functools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import packets as p
import scenario
from scenario import MS, START

HERE = pathlib.Path(__file__).resolve().parent
SITE = HERE / "site.yaml"
WORKERS = (1, 2, 8)
PORTS = ("net0", "net1", "net2")
ANSWER_OF = {"forwarded": "transmit", "answered": "answer", "consumed": "consumed", "kernel": "kernel",
             "dropped": "drop", "held": "held"}
binary = None


def replay(out, files, *arguments, site=SITE):
    inputs = [word for port, file in files.items() for word in ("--in", f"{port}={file}")]
    return subprocess.run([binary, "replay", "--config", site, *inputs, "--out", out, *arguments],
                          capture_output=True, text=True, timeout=300)


class Run:
    """A replay's results, read back."""

    def __init__(self, out, files, *arguments):
        self.out = pathlib.Path(out)
        done = replay(out, files, *arguments)
        if done.returncode != 0 or done.stderr:
            raise AssertionError(f"exit {done.returncode}: {done.stderr}")
        lines = [json.loads(line) for line in (self.out / "decisions.jsonl").read_text().splitlines()]
        self.kinds = collections.defaultdict(list)
        for line in lines:
            self.kinds[next(iter(line))].append(line)
        self.packets = self.kinds["packet"]
        self.counters = json.loads((self.out / "counters.json").read_text())
        self.account = self.counters["account"]
        self.sent = {port: p.read_pcap(self.out / f"{port}.pcap") for port in PORTS}

    def final(self):
        """Verdict and reason of each packet in the end, by number."""
        final = {line["packet"]: (line["verdict"], line.get("reason")) for line in self.packets}
        for line in self.kinds["later"]:
            final[line["later"]] = (line["verdict"], line.get("reason"))
        return final

    def total(self, counter):
        return sum(worker[counter] for worker in self.counters["per_worker"])


def clean(time):
    return not scenario.MALFORMED[0] <= time < scenario.MALFORMED[1]


INSTANCES = {(address, service.instance_port): (service, p.mac(mac))
             for service in scenario.SERVICES for address, mac in service.instances if mac}


ONE_WAY = {service.address: service for service in (scenario.DIRECT, scenario.TUNNEL)}


def to_instances(run, only_clean=True):
    """Frames sent to instances, as (port, service, instance's address, its MAC, frame)."""
    for port in PORTS[1:]:
        for time, frame in run.sent[port]:
            if only_clean and not clean(time):
                continue
            read = p.read_frame(time, frame)
            if read is None:
                continue
            if read.destination in ONE_WAY:
                service = ONE_WAY[read.destination]
                address, mac = service.instances[0]
                yield port, service, address, p.mac(mac), read
            elif (read.destination, read.ports[1]) in INSTANCES:
                service, mac = INSTANCES[read.destination, read.ports[1]]
                yield port, service, read.destination, mac, read


def each_run(test):
    @functools.wraps(test)
    def run_all(self):
        for workers, run in self.runs.items():
            with self.subTest(workers=workers):
                test(self, workers, run)
    return run_all


class Traffic(unittest.TestCase):
    """TCP, UDP, both families, VLAN, fragments, malformed frames, with 1, 2 and 8 workers."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        base = pathlib.Path(cls.directory.name)
        seed = int(os.environ.get("MARGAY_SEED", "1"))
        print(f"MARGAY_SEED={seed}", file=sys.stderr)
        cls.scenario = scenario.make(seed)
        cls.files = scenario.write(cls.scenario, base)
        cls.runs = {w: Run(base / f"{w}", cls.files, "--workers", str(w)) for w in WORKERS}
        cls.again = {w: Run(base / f"{w}-again", cls.files, "--workers", str(w)) for w in WORKERS}

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    @each_run
    def test_two_runs_give_the_same_bytes(self, workers, run):
        names = sorted(file.name for file in run.out.iterdir())
        self.assertEqual(names, ["counters.json", "decisions.jsonl", "net0-kernel.pcap", "net0.pcap", "net1.pcap",
                                 "net2.pcap"])
        same, _, _ = filecmp.cmpfiles(run.out, self.again[workers].out, names, shallow=False)
        self.assertEqual(sorted(same), names)

    @each_run
    def test_every_packet_is_accounted_for_exactly_once(self, workers, run):
        merged = self.scenario.merged()
        self.assertEqual([line["packet"] for line in run.packets], list(range(1, len(merged) + 1)))
        for line, (time, port, frame) in zip(run.packets, merged):
            self.assertEqual((line["port"], line["time"], line["length"]),
                             (port, f"{time // 10**9}.{time % 10**9:09}", len(frame)))
        verdicts = collections.Counter(verdict for verdict, _ in run.final().values())
        self.assertEqual(run.account["input"], len(merged))
        self.assertEqual(run.account["difference"], 0)
        for name, verdict in ANSWER_OF.items():
            self.assertEqual(run.account[name], verdicts.pop(verdict, 0), name)
        self.assertFalse(verdicts)

    @each_run
    def test_every_drop_has_a_reason_and_the_reasons_add_up(self, workers, run):
        reasons = collections.Counter(why for verdict, why in run.final().values() if verdict == "drop")
        self.assertNotIn(None, reasons)
        counted = {name: n for name, n in run.counters["drops"].items() if n}
        self.assertEqual(dict(reasons), counted)

    @each_run
    def test_every_refusal_has_a_cause_and_is_counted_once(self, workers, run):
        answers = collections.Counter(line["reason"] for line in run.packets
                                      if line["verdict"] == "answer" and "reason" in line)
        self.assertGreater(len(answers), 1)
        by_worker, by_sci = collections.Counter(), collections.Counter()
        for worker in run.counters["per_worker"]:
            by_worker.update(worker["refused"])
        for refused in run.counters["refused"].values():
            by_sci.update(refused)
        self.assertEqual(+by_worker, answers)
        self.assertEqual(+by_sci, answers)
        echo_replies = sum(line["verdict"] == "answer" and "reason" not in line for line in run.packets)
        self.assertEqual(run.account["answered"], sum(answers.values()) + echo_replies)

    @each_run
    def test_the_captures_hold_what_was_sent(self, workers, run):
        own = run.kinds["own"]
        for port in PORTS:
            sent = sum(line["verdict"] in ("transmit", "answer") and line["target"] == port
                       for line in run.packets + run.kinds["later"] + own)
            self.assertEqual(len(run.sent[port]), sent)
        kernel = [frame for _, frame in p.read_pcap(run.out / "net0-kernel.pcap")]
        self.assertEqual(len(kernel), run.account["kernel"])
        self.assertEqual(run.total("transmitted"),
                         run.account["forwarded"] + run.account["answered"] + len(own))

    @each_run
    def test_nothing_remains_after_the_last_timer(self, workers, run):
        for name in ("flows", "slots", "provisional_slots", "held"):
            self.assertEqual(run.counters["totals"][name], 0, name)
        self.assertEqual(run.total("audit_differences"), 0)
        told = collections.Counter()
        for line in run.kinds["ended"]:
            told[line["sci"], line["instance"], line["reason"]] += line["ended"]
        for instance in run.counters["instances"]:
            self.assertEqual(instance["opened"], sum(instance["ended"].values()))
            self.assertEqual(instance["slots"]["pool"] + instance["slots"]["idle"], instance["slots"]["limit"])
            for reason, n in instance["ended"].items():
                self.assertEqual(told[instance["sci"], instance["instance"], reason], n)
        self.assertGreater(sum(instance["opened"] for instance in run.counters["instances"]), 300)

    @each_run
    def test_clean_packets_arrive_once_and_whole(self, workers, run):
        questions = collections.Counter(read.payload for *_, read in to_instances(run) if read.payload)
        for payload in self.scenario.forwarded:
            self.assertEqual(questions[payload], 1, payload)
        answers = collections.Counter()
        for time, frame in run.sent["net0"]:
            read = p.read_frame(time, frame) if clean(time) else None
            if read is None:
                continue
            self.assertTrue(p.transport_checksum_right(frame), frame.hex())
            self.assertIn(read.source, [service.address for service in scenario.SERVICES])
            self.assertEqual((read.destination_mac, read.source_mac),
                             (scenario.FORWARDER, scenario.PORT_MAC["net0"]))
            answers[read.payload] += 1
        for payload in self.scenario.answered:
            self.assertEqual(answers[payload], 1, payload)

    @each_run
    def test_each_connection_stays_with_one_instance(self, workers, run):
        connection = collections.Counter()  # by client: a SYN begins the next one
        instances = collections.defaultdict(set)
        for port, service, address, mac, read in to_instances(run):
            self.assertTrue(p.transport_checksum_right(read.bytes), read.bytes.hex())
            self.assertEqual((port, read.vlan), (service.side, scenario.VLAN[service.side]))
            self.assertEqual((read.destination_mac, read.source_mac), (mac, scenario.PORT_MAC[port]))
            client = (service.address, service.port, read.source, read.ports[0], clean(read.time) and
                      read.time >= scenario.MALFORMED[1])
            connection[client] += read.protocol == p.TCP and read.flags & p.SYN != 0
            instances[client, connection[client]].add(address)
        self.assertGreater(len(instances), 400)
        self.assertEqual({len(used) for used in instances.values()}, {1})
        used = collections.Counter(next(iter(one)) for one in instances.values())
        for service in (scenario.WEB, scenario.WEB6, scenario.DNS):
            for address, _ in service.instances:
                self.assertGreater(used[address], 10, address)

    @each_run
    def test_packets_are_handed_over_to_the_owner(self, workers, run):
        paths = [line["workers"] for line in run.packets]
        self.assertEqual({len(path) for path in paths}, {1} if workers == 1 else {1, 2})
        over = sum(len(path) - 1 for path in paths)
        copies = run.counters["totals"]["copies_between_workers"]
        self.assertEqual({path[0] for path in paths}, set(range(workers)))
        self.assertEqual((run.total("handed_over"), run.total("taken_over")), (over + copies, over + copies))
        if workers == 1:
            return
        self.assertGreater(over, 1000)
        owner = {}
        for line in run.packets:
            if "instance" not in line:
                continue
            parsed = line["parsed"]
            side = "source" if line["direction"] == "from-client" else "destination"
            client = (parsed[side], parsed[side + "_port"], parsed["layer"])
            self.assertEqual(owner.setdefault(client, line["workers"][-1]), line["workers"][-1])
        self.assertEqual(set(owner.values()), set(range(workers)))

    def test_flows_of_single_instances_do_not_depend_on_the_number_of_workers(self):
        alike = []
        for run in self.runs.values():
            flows = collections.defaultdict(list)
            for _, service, _, _, read in to_instances(run, only_clean=False):
                if len(service.instances) == 1:
                    flows[service.address, read.source, read.ports[0]].append(read.bytes)
            alike.append(flows)
        self.assertGreater(len(alike[0]), 150)
        self.assertTrue(alike[0] == alike[1] and alike[0] == alike[2])

    @each_run
    def test_who_finds_no_slot_is_reset(self, workers, run):
        refused = [line for line in run.packets if line.get("reason") == "no_free_slot"]
        small = [line for line in refused if line["parsed"]["destination"] == scenario.SMALL.address and
                 line["time"] < f"{scenario.MALFORMED[0] // 10**9}.5"]
        self.assertEqual([line["verdict"] for line in small], ["answer"] * 7)
        resets = [read for time, frame in run.sent["net0"] if clean(time) and (read := p.read_frame(time, frame)) and
                  read.source == scenario.SMALL.address and read.flags == p.RST | p.ACK]
        self.assertEqual(len({read.destination for read in resets}), 7)

    @each_run
    def test_what_waits_in_vain_for_a_next_hop_is_dropped_by_name(self, workers, run):
        waiting = [line for line in run.packets if line["verdict"] == "held" and
                   line.get("sci") == f"{scenario.SILENT.address}:80"]
        self.assertGreaterEqual(len(waiting), 3)
        later = {line["later"]: line for line in run.kinds["later"]}
        for line in waiting:
            last = later[line["packet"]]
            self.assertEqual((last["verdict"], last["reason"]), ("drop", "neighbour_unresolved"))
            self.assertTrue(1 < float(last["time"]) - float(line["time"]) < 6, last)

    @each_run
    def test_timers_run_out_in_their_own_time(self, workers, run):
        """All timers of the site are shorter than 10 s, and nothing comes in the 20 s before the last packets."""
        ends = [float(line["time"]) - START / 10**9 for line in run.kinds["ended"] if line["reason"] == "timeout"]
        self.assertGreater(len([t for t in ends if t < 20]), 50)
        self.assertGreater(len([t for t in ends if t > 31]), 20)
        self.assertFalse([t for t in ends if 20 <= t <= 31])

    @each_run
    def test_odd_packets_have_the_outcome_that_is_theirs(self, workers, run):
        number = {frame: i + 1 for i, frame in reversed(list(enumerate(self.scenario.merged())))}
        self.assertEqual(len(self.scenario.expected), 14)
        final = run.final()
        for frame, verdict, reason in self.scenario.expected:
            self.assertEqual(final[number[frame]], (verdict, reason), frame[2].hex())

    def test_another_seed_gives_other_owners(self):
        other = Run(pathlib.Path(self.directory.name) / "seed", self.files, "--workers", "8", "--seed", "2")
        self.assertNotEqual([line["workers"] for line in other.packets],
                            [line["workers"] for line in self.runs[8].packets])

    def test_no_drain_ends_with_the_last_packet(self):
        run = Run(pathlib.Path(self.directory.name) / "no-drain", self.files, "--no-drain")
        last = self.scenario.merged()[-1][0]
        self.assertEqual(run.counters["ended"], f"{last // 10**9}.{last % 10**9:09}")
        self.assertGreater(run.counters["totals"]["slots"], 0)
        self.assertEqual(run.account["difference"], 0)


class AssumedNeighbours(unittest.TestCase):
    def test_next_hops_and_hosts_on_link_get_their_mac_by_rule(self):
        with tempfile.TemporaryDirectory() as directory:
            base = pathlib.Path(directory)
            sent = scenario.make_without_neighbours(3)
            files = scenario.write(sent, base)
            for workers in WORKERS:
                with self.subTest(workers=workers):
                    self.check(Run(base / f"{workers}", files, "--workers", str(workers), "--assume-neighbours"), sent)

    def check(self, run, sent):
        seen = set()
        for port in PORTS:
            for time, frame in run.sent[port]:
                read = p.read_frame(time, frame)
                if read is None:
                    continue
                seen.add(read.payload)
                if read.flags & p.RST and read.destination_mac == scenario.FORWARDER:
                    continue  # an answer, which goes back to where its question came from
                if port == "net0":
                    gateway = "2001:db8::1" if ":" in read.destination else "192.0.2.1"
                    on_link = read.destination.startswith(("192.0.2.", "2001:db8::"))
                    hop = read.destination if on_link else gateway
                else:
                    one_way = ONE_WAY.get(read.destination)
                    hop = one_way.instances[0][0] if one_way else read.destination
                self.assertEqual(read.destination_mac.hex(":"), self.rule(hop))
        self.assertLessEqual(sent.forwarded | sent.answered, seen)
        held = {line["packet"] for line in run.packets if line["verdict"] == "held"}
        on_link = {i + 1 for i, (time, _, _) in enumerate(sent.merged()) if time >= START + 1000 * MS}
        self.assertTrue(held and held <= on_link)
        self.assertEqual(run.account["difference"], 0)
        self.assertEqual(run.account["input"], len(sent.frames))
        self.assertEqual(run.account["held"], 0)
        self.assertGreaterEqual(run.counters["totals"]["assumed_answers"], 3)

    @staticmethod
    def rule(address):
        packed = p.address(address)
        if len(packed) == 4:
            return (b"\x02\x04" + packed).hex(":")
        mac = bytearray(b"\x02\x06\0\0\0\0")
        for i, byte in enumerate(packed):
            mac[2 + i % 4] ^= byte
        return mac.hex(":")


class OddCaptures(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.base = pathlib.Path(self.directory.name)
        self.out = self.base / "out"
        self.capture = self.base / "a.pcap"

    def frame(self, n, payload=b"x" * 30):
        packet = p.udp(p.address(f"198.51.100.{n}"), p.address("192.0.2.10"), (1000, 53), payload)
        return p.ethernet(scenario.FORWARDER, scenario.PORT_MAC["net0"], 0x0800, packet)

    def run_one(self, frames, **how):
        p.write_pcap(self.capture, frames, **how)
        return Run(self.out, {"net0": self.capture}, "--assume-neighbours")

    def test_stamps_that_go_back_are_clamped_and_counted(self):
        run = self.run_one([(START, self.frame(1)), (START - MS, self.frame(2)), (START + MS, self.frame(3))])
        self.assertEqual(run.counters["stamps_clamped"], {"net0": 1})
        self.assertEqual([line["time"][-10:] for line in run.packets], [".000000000", ".000000000", ".001000000"])

    def test_frames_cut_off_by_the_capture_are_dropped_by_name(self):
        run = self.run_one([(START, self.frame(1)), (START, self.frame(2, b"y" * 500))], snap=100)
        self.assertEqual(run.final(), {1: ("transmit", None), 2: ("drop", "truncated_in_capture")})
        self.assertEqual(run.counters["drops"]["truncated_in_capture"], 1)
        self.assertEqual(run.account["difference"], 0)

    def test_frames_beyond_a_buffer_are_dropped_by_name(self):
        long = self.frame(1) + bytes(4000)
        run = self.run_one([(START, long), (START, self.frame(2))])
        self.assertEqual(run.final(), {1: ("drop", "multi_segment"), 2: ("transmit", None)})

    def test_a_capture_without_packets_gives_empty_results(self):
        run = self.run_one([])
        self.assertEqual((run.account["input"], run.packets), (0, []))

    def error(self, files, *arguments, status=1, site=SITE):
        done = replay(self.out, files, *arguments, site=site)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)
        prefix = "margay-dataplane replay: "
        self.assertTrue(done.stderr.startswith(prefix), done.stderr)
        return done.stderr[len(prefix):-1]

    def test_errors_are_one_line_that_says_where(self):
        p.write_pcap(self.capture, [(START, self.frame(1))])
        good = {"net0": self.capture}
        missing = self.base / "missing.pcap"
        self.assertEqual(self.error({"net0": missing}), f"{missing}: cannot open: No such file or directory")
        self.assertEqual(self.error({"net0": SITE}), f"{SITE}: not a pcap or pcapng capture: unknown file format")
        self.assertEqual(self.error({"net9": self.capture}), f"--in net9={self.capture}: {SITE} has no port net9")
        self.assertEqual(self.error(good, "--in", "net1"), "--in net1: expected PORT=CAPTURE")
        self.assertEqual(self.error(good, "--in", f"net0={SITE}"), f"--in net0={SITE}: port net0 has a capture already")
        self.assertIn("no-such-site.yaml", self.error(good, site=self.base / "no-such-site.yaml"))

    def test_another_link_type_is_refused(self):
        p.write_pcap(self.capture, [(START, self.frame(1)[14:])], link_type=101)
        self.assertEqual(self.error({"net0": self.capture}),
                         f"{self.capture}: link type RAW, expected EN10MB (Ethernet)")

    def test_a_capture_that_breaks_off_names_the_packet(self):
        p.write_pcap(self.capture, [(START, self.frame(1)), (START, self.frame(2))])
        self.capture.write_bytes(self.capture.read_bytes()[:-10])
        self.assertRegex(self.error({"net0": self.capture}), f"^{self.capture}: packet 2: truncated dump file")

    def test_an_input_is_never_overwritten(self):
        self.out.mkdir()
        own = self.out / "net0.pcap"
        p.write_pcap(own, [(START, self.frame(1))])
        before = own.read_bytes()
        self.assertEqual(self.error({"net0": own}), f"{own}: is an input of this replay, choose another --out")
        self.assertEqual(own.read_bytes(), before)

    def test_wrong_usage_exits_with_2(self):
        p.write_pcap(self.capture, [])
        good = {"net0": self.capture}
        self.assertIn("--workers", self.error(good, "--workers", "0", status=2))
        self.assertIn("--workers", self.error(good, "--workers", "33", status=2))
        for seed in ("-1", "18446744073709551616", "1x", ""):
            self.assertIn("--seed: expected 0 to 18446744073709551615, got", self.error(good, "--seed", seed, status=2))
        self.assertIn("--nonsense", self.error(good, "--nonsense", status=2))
        self.assertIn("--in", self.error({}, status=2))


if __name__ == "__main__":
    binary = sys.argv.pop(1)
    unittest.main()
