#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is every reason that a packet is dropped or refused for made to happen by a test?

    reasons_test.py SOURCE_FOLDER

Reads DropReason and Refusal in common/reasons.h. Exit status 1 when a test names one neither by its enumerator
nor by the word that commands show."""
import pathlib
import re
import sys

LISTS = {"MARGAY_DROP_REASONS": "DropReason", "MARGAY_REFUSALS": "Refusal"}
REASON = re.compile(r'X\((k\w+), "(\w+)", "[^"]+"\)')


def reasons(header):
    """[(enumeration, enumerator, word)] of the lists in the header."""
    found = []
    for macro, enumeration in LISTS.items():
        body = re.search(r"#define " + macro + r"\(X\)((?:.*\\\n)*.*\n)", header)
        if body is None:
            sys.exit(f"reasons.h has no {macro}")
        found += [(enumeration, *pair) for pair in REASON.findall(body[1]) if pair[1] != "none"]
    return found


def unnamed(wanted, text):
    return [reason for reason in wanted
            if not re.search(rf'\b{reason[0]}::{reason[1]}\b|(["\']){reason[2]}\1', text)]


def try_itself():
    header = ('#define MARGAY_DROP_REASONS(X) \\\n  X(kNone, "none", "not") \\\n  X(kBad, "bad", "is bad") \\\n'
              '  X(kUgly, "ugly", "is ugly")\n\n#define MARGAY_REFUSALS(X) \\\n  X(kFull, "full", "is full")\n')
    wanted = reasons(header)
    assert wanted == [("DropReason", "kBad", "bad"), ("DropReason", "kUgly", "ugly"),
                      ("Refusal", "kFull", "full")], wanted
    assert unnamed(wanted, 'drop(DropReason::kBad); name == "ugly"; Refusal::kFull') == []
    assert unnamed(wanted, "DropReason::kBadder; ugly; DropReason::kFull") == wanted


def main():
    try_itself()
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    source = pathlib.Path(sys.argv[1])
    wanted = reasons((source / "common/reasons.h").read_text())
    files = [f for f in sorted((source / "tests").rglob("*")) if f.suffix in (".cc", ".h", ".py")]
    text = "\n".join(f.read_text() for f in files if f.parent.name not in ("conformance", "fuzz"))
    missing = unnamed(wanted, text)
    for enumeration, enumerator, word in missing:
        print(f"{enumeration}::{enumerator} (\"{word}\") is named by no test: make it happen and check its counter")
    print(f"{len(wanted)} reasons, {len(missing)} of them without a test")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
