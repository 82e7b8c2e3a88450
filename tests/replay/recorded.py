# SPDX-License-Identifier: Apache-2.0
"""Recordings of a site table, written by hand as docs/replay.md lists their fields."""

import copy
import json

from scenario import MS, PORT_MAC, START

ADDRESSES = {"net0": ["192.0.2.2/24", "2001:db8::2/64"], "net1": ["10.1.0.2/24", "2001:db8:1::2/64"],
             "net2": ["10.2.0.2/24"]}


def instance(index, name, address, generation=1, health="HEALTHY", **more):
    serves = health in ("HEALTHY", "DEGRADED")
    return {"index": index, "generation": generation, "health": health, "admin": "enabled", "drain_deadline": 0,
            "health_since": 0, "serves_since": 0, "limit": 1000 if serves else 0, "load": 0,
            "load_active": 0, "load_until": 0, "load_lifetime": 0, "id": name, "address": address, "port": 8080,
            "max_sessions": 1000, "weight": 1, "preference": 100, "price": 0, "security_level": 0} | more


def sci(*instances, **more):
    return {"index": 0, "csci_id": "192.0.2.10:80", "cs_id": "web",
            "endpoints": [{"address": "192.0.2.10", "port": 80, "protocol": "tcp"}],
            "mode": "nat", "gue.port": 6080, "gue.variant": 0, "gue.checksum": "computed",
            "mss_clamp": 0, "balance": "round-robin", "selection.cheapest_first": False,
            "selection.security_level_min": 0, "affinity.timeout": 8, "timers.embryonic": 2, "timers.closing": 2,
            "timers.time_wait": 3, "timers.reset_grace": 2, "timers.unreplied": 5, "when_none_healthy": "reject",
            "when_full": "reject", "on_unhealthy": "reset", "unknown_flow": "reset", "provisional.share": 1,
            "degradation_factor": 0.5, "drain_deadline": 600, "ramp": 0, "instances": list(instances)} | more


class Recording:
    """Lines at times in milliseconds after START; each snapshot changes the one before it."""

    def __init__(self, *scis, at=-10, **state):
        ports = [{"name": name, "mac": PORT_MAC[name].hex(":"), "addresses": [{"address": a} for a in addresses]}
                 for name, addresses in ADDRESSES.items()]
        self.generation = 1
        table = {"generation": 1, "base": 0, "scis": list(scis), "removed": []}
        self.lines = [{"time": START + at * MS,
                       "state": {"site": "replay-test", "monotonic": 5_000_000_000, "ports": ports, "forwarding": True,
                                 "waiting": False, "table": table, "set": []} | state}]

    def add(self, at, **what):
        self.lines.append({"time": START + int(at * MS)} | copy.deepcopy(what))
        return self

    def snapshot(self, at, *scis, base=None, removed=()):
        base = self.generation if base is None else base
        self.generation += 1
        return self.add(at, snapshot={"generation": self.generation, "base": base, "scis": list(scis),
                                      "removed": [{"index": index} for index in removed]})

    def set(self, at, name, **setting):
        return self.add(at, instance={"csci_id": "192.0.2.10:80", "si_id": name} | setting)

    def write(self, path):
        path.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        return path
