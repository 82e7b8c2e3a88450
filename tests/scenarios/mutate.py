#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks the cores as mutations.txt says, one line at a time, builds, and sees the line's scenario fail.

    mutate.py SOURCE BUILD [SCENARIO...]

Takes minutes, so no part of scripts/test. Files are changed in place and written back; give it a clone of its own.
Exit status 0 if each mutation was seen.
"""
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TARGET = "tests/unit/control/control_scenario_test"


def mutations(wanted):
    for number, line in enumerate((HERE / "mutations.txt").read_text().splitlines(), 1):
        if line.startswith("#"):
            continue
        scenario, file, old, new = line.split(" | ")
        if not wanted or scenario in wanted:
            yield number, scenario, file, old, new


def built(build):
    return subprocess.run(["ninja", "-C", build, TARGET], capture_output=True, text=True)


def passes(build, scenario):
    try:
        done = subprocess.run([os.path.join(build, TARGET), f"--gtest_filter=CSma/Scenario.*/{scenario}"],
                              capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0 and "1 test" in done.stdout


def attempt(source, build, scenario, file, old, new):
    path = source / file
    text = path.read_text()
    if text.count(old) != 1:
        return f"stands {text.count(old)} times in the file, expected once"
    try:
        path.write_text(text.replace(old, new))
        done = built(build)
        if done.returncode != 0:
            return "does not build: " + next((l for l in done.stdout.splitlines() if "error:" in l), "")
        return "NOT SEEN" if passes(build, scenario) else None
    finally:
        path.write_text(text)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    source, build = pathlib.Path(sys.argv[1]), sys.argv[2]
    tried = list(mutations(sys.argv[3:]))
    if built(build).returncode != 0:
        sys.exit(f"{build}: {TARGET} does not build")
    for scenario in sorted({m[1] for m in tried}):
        if not passes(build, scenario):
            sys.exit(f"{scenario} fails as it is")
    missed = 0
    for number, scenario, file, old, new in tried:
        fault = attempt(source, build, scenario, file, old, new)
        missed += fault is not None
        print(f"mutations.txt:{number}: {scenario}: {fault or 'seen'}", flush=True)
    built(build)
    print(f"{len(tried)} mutations, {missed} not seen")
    return 1 if missed or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
