#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which tests name which requirement row (SCI-n, CSMA-n, D-n).

    requirements_table.py TESTS_FOLDER

Prints a line a row: a `+` when rows_met.txt claims it, the row, how often it is named, and the tests. Exit status 1
when rows_met.txt claims a row that no test names, or holds a line that is none.
"""
import collections
import pathlib
import re
import sys

ROW = re.compile(r"(?<![A-Za-z])(SCI|CSMA|D)-(\d+)")
ROW_IN_CC = re.compile(r"(?<![A-Za-z])(SCI|CSMA|D)-?(\d+)")  # test names have no hyphen
CLAIM = re.compile(r"^((?:SCI|CSMA|D)-\d+)( +\S.*)?$")


def named_rows(files):
    """{row: Counter of files} from (name, text)."""
    rows = collections.defaultdict(collections.Counter)
    for name, text in files:
        for match in (ROW_IN_CC if name.endswith(".cc") else ROW).finditer(text):
            rows[f"{match[1]}-{match[2]}"][name] += 1
    return rows


def claims(text):
    """({row: words}, [lines that are no claim])."""
    met, bad = {}, []
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        match = CLAIM.match(line)
        if match and match[1] not in met:
            met[match[1]] = (match[2] or "").strip()
        else:
            bad.append(line)
    return met, bad


def order(row):
    kind, number = row.split("-")
    return ("SCI", "CSMA", "D").index(kind), int(number)


def try_itself():
    rows = named_rows([("a", "SCI-90, SCI-92\nx SCI-90"), ("b", "D-7 CSMA-1 XSCI-3 0xD45"),
                       ("c.cc", "TEST(X, SCI74SCI75D46Y)"), ("d.py", "SCI4 = Sci()")])
    assert rows == {"SCI-90": {"a": 2}, "SCI-92": {"a": 1}, "D-7": {"b": 1}, "CSMA-1": {"b": 1},
                    "SCI-74": {"c.cc": 1}, "SCI-75": {"c.cc": 1}, "D-46": {"c.cc": 1}}, rows
    assert claims("# x\n\nSCI-5\nSCI-90  exact\n") == ({"SCI-5": "", "SCI-90": "exact"}, [])
    assert claims("SCI-5\nSCI-5\nSCI 7\n")[1] == ["SCI-5", "SCI 7"]
    assert sorted(["D-1", "CSMA-2", "SCI-10", "SCI-9"], key=order) == ["SCI-9", "SCI-10", "CSMA-2", "D-1"]


def main():
    try_itself()
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    tests = pathlib.Path(sys.argv[1])
    sources = [f for f in sorted(tests.rglob("*")) if f.suffix in (".cc", ".h", ".py", ".expected")]
    sources = [f for f in sources if f.parent.name != "conformance"]
    rows = named_rows((str(f.relative_to(tests)), f.read_text()) for f in sources)
    met, bad = claims((pathlib.Path(__file__).parent / "rows_met.txt").read_text())
    for row in sorted(set(rows) | set(met), key=order):
        files = rows.get(row, {})
        print(f"{'+' if row in met else ' '} {row:8} {sum(files.values()):4}  {' '.join(files)}")
    for line in bad:
        print(f"rows_met.txt: `{line}` is no row, or one named twice")
    unnamed = [row for row in met if row not in rows]
    for row in unnamed:
        print(f"rows_met.txt: {row} is named by no test")
    print(f"{len(met)} rows met, {len(unnamed)} of them without a test, {len(rows)} rows named")
    return 1 if unnamed or bad else 0


if __name__ == "__main__":
    sys.exit(main())
