#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The include walls: which folder may use what. Judged by what the compiler read for each object, so an include that
comes through another header counts too; and, for headers that no object of their own folder reads, by their own
#include lines.

    include_walls_test.py [--preprocess] BUILD_FOLDER SOURCE_FOLDER

Of a folder that is built, `ninja -t deps` tells it. With --preprocess the compiler is asked, and nothing needs to be
built; each file is judged by itself where the folder was set up with -Dunity=off.

Exit status 0 if all walls stand. Before that it tries itself on made-up dependencies that break each wall.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

RTE = r"(.*/)?rte_\w+\.h$"
LIBRARIES = r"common/(rcu|log)\.h$|.*/(spdlog|fmt|yaml-cpp|nlohmann|openssl|boost|curl)[-./]"
IMPURE = LIBRARIES + r"|.*/urcu[-./]"
PROTOBUF = r".*\.pb\.h$|(.*/)?google/protobuf/"
GRPC = r".*\.grpc\.pb\.h$|(.*/)?grpc(pp)?/"
OPENSSL = r"(.*/)?openssl/"
# (files that the wall stands around, what they must not read, in words)
WALLS = (
    (r"(?!dataplane/dpdk/|bench/|tests/eal/)", RTE, "only dataplane/dpdk, the benches and the EAL tests may use DPDK"),
    (r"common/", r"(dataplane|control)/", "common depends on neither dataplane nor control"),
    (r"dataplane/", r"control/", "the data plane does not depend on control"),
    (r"control/", r"dataplane/", "control does not depend on the data plane"),
    (r"control/sci/", r"control/(?!sci/)", "the SCI's decisions depend on nothing else of control"),
    (r"control/sci/", IMPURE, "the SCI's decisions are pure: no RCU, no log, no other library"),
    (r"control/cps/core/", r"control/(?!cps/core/|northbound/core/)",
     "a C-PS's decisions depend on its protocol alone"),
    (r"control/cps/core/", IMPURE, "a C-PS's decisions are pure: no RCU, no log, no other library"),
    (r"(common|dataplane|control/(?!rpc/))", GRPC, "only control/rpc may use gRPC"),
    (r"(common/(?!audit/)|dataplane|control/(?!rpc/|security/|http/server\.cc))", OPENSSL,
     "only control/{security,rpc}, the HTTP server (by Asio) and the audit log's chain may use OpenSSL"),
    (r"control/(security|rpc)/", r"control/(?!security/|rpc/)", "security and transport depend on nobody"),
    (r"control/security/", r"control/rpc/", "security does not depend on transport"),
    (r"control/c_sma/", LIBRARIES, "the C-SMA's decisions are pure: no log, no other library"),
    (r"control/c_sma/(?!entry_table\.cc)", r".*/urcu[-./]",
     "the C-SMA's decisions are pure: RCU in the cache's table alone"),
    (r"control/c_sma/", r"control/(?!c_sma/|northbound/core/|sci/(report|aggregate|computing_time|config)\.h$)",
     "the C-SMA's decisions know reports, rows and nothing else of control"),
    (r"control/northbound/core/", r"control/(?!northbound/core/|c_sma/(config|metric_definitions)\.h$)",
     "the northbound's decisions know nothing else of control"),
    (r"control/northbound/core/", IMPURE, "the northbound's decisions are pure: no RCU, no log, no other library"),
    (r"(common|dataplane|control/(sci|c_sma|northbound/core|cps/core))/", PROTOBUF,
     "only the adapters of the control plane may use Protobuf"),
    (r"dataplane/core/", r"dataplane/(?!core/)", "the core depends on nothing else of the data plane"),
    (r"dataplane/core/", IMPURE, "the core is pure: no RCU, no log, no other library"),
    (r"dataplane/cli/", r"dataplane/(dpdk|replay)/", "commands know ports through PortInspector alone"),
    (r"dataplane/replay/", r"dataplane/dpdk/", "replay runs without DPDK"),
)


def read_deps(text, build, source):
    """[(source file, files that were read)] of `ninja -t deps`, relative to the source folder where inside it."""
    objects = []
    for block in text.split("\n\n"):
        lines = block.strip().splitlines()
        if len(lines) < 2 or "#deps" not in lines[0]:
            continue
        files = []
        for line in lines[1:]:
            file = os.path.normpath(os.path.join(build, line.strip()))
            files.append(os.path.relpath(file, source) if file.startswith(source + os.sep) else file)
        units = [f for f in files if f.endswith((".cc", ".c"))]
        if units:
            objects.append((units[0], files))
    return objects


def preprocessed(build, source):
    """The shape of read_deps(), by the compiler's -M for each file of ours."""
    def deps(entry):
        words = shlex.split(entry["command"])
        words = words[:words.index("-MD")] + words[words.index("-c"):] + ["-M"]
        rule = subprocess.run(words, cwd=build, check=True, text=True, stdout=subprocess.PIPE).stdout
        files = rule.replace("\\\n", " ").split()[1:]
        return "x.o: #deps\n" + "".join(f"    {file}\n" for file in files)

    commands = json.loads(pathlib.Path(build, "compile_commands.json").read_text())
    ours = [c for c in commands if re.match(r"\.\./(common|control|dataplane|bench|tests)/", c["file"])]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return read_deps("\n".join(pool.map(deps, ours)), build, source)


def own_includes(source):
    """The same shape from the #include lines of each header, itself only."""
    objects = []
    for folder in ("common", "dataplane", "control"):
        for file in pathlib.Path(source, folder).rglob("*.h"):
            files = re.findall(r'^\s*#\s*include\s*["<]([^">]+)[">]', file.read_text(), re.MULTILINE)
            objects.append((str(file.relative_to(source)), files))
    return objects


def breaches(objects):
    found = []
    for unit, files in objects:
        for around, forbidden, words in WALLS:
            if re.match(around, unit) is None:
                continue
            found += [f"{unit} reads {f}: {words}" for f in files if re.match(forbidden, f)]
    return found


def try_itself():
    def deps(unit, file):
        return f"x.o: #deps 2, deps mtime 1 (VALID)\n    ../{unit}\n    {file}\n\n"

    allowed = (
        ("dataplane/dpdk/ports.cc", "/usr/include/dpdk/rte_mbuf.h"),
        ("bench/peer_x.cc", "/usr/include/rte_hash.h"),
        ("dataplane/core/parse.cc", "../common/net.h"),
        ("dataplane/worker.cc", "../dataplane/core/parse.h"),
        ("dataplane/worker.cc", "/usr/include/urcu-qsbr.h"),
        ("tests/unit/x.cc", "../dataplane/core/parse.h"),
        ("control/sci/sci.cc", "../common/health.h"),
        ("control/sci/sci.cc", "../control/sci/health.h"),
        ("control/agent.cc", "../control/sci/health.h"),
        ("control/record/wire.cc", "proto/margay/v1/report.pb.h"),
        ("control/rpc/server.cc", "/usr/include/grpcpp/grpcpp.h"),
        ("control/rpc/server.cc", "../control/security/trust.h"),
        ("control/security/trust.cc", "/usr/include/openssl/x509.h"),
        ("common/audit/chain.cc", "/usr/include/openssl/sha.h"),
        ("control/c_sma/c_sma.cc", "../control/sci/report.h"),
        ("control/c_sma/c_sma.cc", "../control/northbound/core/row.h"),
        ("control/c_sma/entry_table.cc", "/usr/include/x86_64-linux-gnu/urcu/rculfhash.h"),
    )
    forbidden = (
        ("dataplane/worker.cc", "/usr/include/dpdk/rte_mbuf.h"),
        ("tests/unit/x.cc", "/usr/include/rte_ring.h"),
        ("common/net.cc", "../dataplane/core/units.h"),
        ("common/net.cc", "../control/agent.h"),
        ("dataplane/worker.cc", "../control/agent.h"),
        ("control/agent.cc", "../dataplane/core/parse.h"),
        ("control/agent.cc", "../dataplane/mailbox.h"),
        ("control/sci/sci.cc", "../control/agent.h"),
        ("control/sci/sci.cc", "../common/log.h"),
        ("control/sci/sci.cc", "/usr/include/nlohmann/json.hpp"),
        ("control/sci/sci.cc", "proto/margay/v1/report.pb.h"),
        ("control/c_sma/c_sma.cc", "../control/sci/sci.h"),
        ("control/c_sma/c_sma.cc", "../control/northbound/session.h"),
        ("control/c_sma/c_sma.cc", "../common/log.h"),
        ("control/c_sma/metric_cache.cc", "/usr/include/x86_64-linux-gnu/urcu/rculfhash.h"),
        ("control/c_sma/entry_table.cc", "/usr/include/spdlog/spdlog.h"),
        ("control/c_sma/entry_table.cc", "../common/rcu.h"),
        ("control/c_sma/c_sma.cc", "proto/margay/v1/report.pb.h"),
        ("control/c_sma/c_sma.cc", "/usr/include/openssl/evp.h"),
        ("control/northbound/core/row.cc", "../control/c_sma/c_sma.h"),
        ("control/northbound/core/row.cc", "/usr/include/urcu/map/urcu-qsbr.h"),
        ("control/northbound/core/row.cc", "/usr/include/grpcpp/grpcpp.h"),
        ("common/net.cc", "/usr/include/google/protobuf/message.h"),
        ("dataplane/worker.cc", "/usr/include/google/protobuf/message.h"),
        ("control/site.cc", "/usr/include/grpcpp/grpcpp.h"),
        ("control/site.cc", "proto/margay/v1/collection.grpc.pb.h"),
        ("control/security/trust.cc", "/usr/include/grpc/grpc.h"),
        ("control/site.cc", "/usr/include/openssl/x509.h"),
        ("control/rpc/server.cc", "../control/site.h"),
        ("control/security/trust.cc", "../control/rpc/server.h"),
        ("dataplane/core/parse.cc", "../dataplane/worker.h"),
        ("dataplane/core/parse.cc", "../common/rcu.h"),
        ("dataplane/core/parse.cc", "/usr/include/urcu/map/urcu-qsbr.h"),
        ("dataplane/core/parse.cc", "/usr/include/spdlog/spdlog.h"),
        ("dataplane/cli/show_port.cc", "../dataplane/dpdk/ports.h"),
        ("dataplane/replay/replay.cc", "../dataplane/dpdk/ports.h"),
    )
    for unit, file in allowed:
        assert breaches(read_deps(deps(unit, file), "/s/build", "/s")) == [], (unit, file)
    for unit, file in forbidden:
        assert breaches(read_deps(deps(unit, file), "/s/build", "/s")) != [], (unit, file)


def main():
    try_itself()
    words = [w for w in sys.argv[1:] if w != "--preprocess"]
    if len(words) != 2:
        sys.exit(__doc__)
    build, source = map(os.path.realpath, words)
    if "--preprocess" in sys.argv:
        objects = preprocessed(build, source)
    else:
        objects = read_deps(subprocess.check_output(["ninja", "-C", build, "-t", "deps"], text=True), build, source)
    # An empty record would let anything pass.
    for folder in ("common/", "control/c_sma/", "control/northbound/core/", "control/sci/", "dataplane/core/",
                   "dataplane/dpdk/"):
        if not any(unit.startswith(folder) for unit, _ in objects):
            sys.exit(f"{build}: no object of {folder} has been built")
    headers = own_includes(source)
    found = breaches(objects) + breaches(headers)
    for line in found:
        print("BREACH:", line)
    print(f"{len(objects)} objects, {len(headers)} headers, {len(found)} breaches")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
