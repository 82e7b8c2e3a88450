#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The burst function's hit path in a built binary: no locked instruction, no fence, no call out of the program but to
memcpy and its kind, no call through a pointer but the one to the tag kernels.

    hit_path_disassembly_test.py BINARY

Follows FastPath::process and all it calls or jumps to, except NOT_HIT_PATH. Exit status 0 if clean. Before that it
tries itself on made-up disassembly with one fault each.
"""
import re
import subprocess
import sys

ROOT = "margay::dp::FastPath::process("
# What a burst may call that no hit runs: a flow's birth and end, the SCI's own addresses.
NOT_HIT_PATH = (
    "margay::dp::FastPath::miss(",
    "margay::dp::FastPath::lost_instance(",
    "margay::dp::FastPath::end_binding(",
    "margay::dp::FastPath::release_slot(",
    "margay::dp::FastPath::local_packet(",
    "margay::dp::FastPath::arp(",
    "margay::dp::FastPath::ask(",
    "margay::dp::FastPath::release_provisional(",
)
# Without these the closure is not what it should be (what is smaller is inlined into them).
EXPECTED = ("FastPath::classify(", "FlowTable::find_bulk(", "FastPath::hit(", "track_tcp(", "translate(", "match_avx2(")
KERNEL_POINTER, KERNELS = "::kernel>", "margay::dp::(anonymous namespace)::match_"
MAY_CALL_OUTSIDE = re.compile(r"<mem(cpy|move|set|cmp)@")

HEAD = re.compile(r"^([0-9a-f]+) <(.*)>:$")
LINE = re.compile(r"^\s*([0-9a-f]+):\s+(.*)$")
FLOW = re.compile(r"^(?:addr32 |bnd |notrack )*(call|j[a-z]+)\s+(\*?)(.*)$")
BANNED = re.compile(r"^(lock\b|mfence|lfence|sfence|syscall|int\b|xchg\b.*\()")


class Function:
    def __init__(self, name):
        self.name = name
        self.code = []  # (address, instruction)


def read(text):
    functions, current = {}, None
    for line in text.splitlines():
        head = HEAD.match(line)
        if head:
            current = functions[int(head[1], 16)] = Function(head[2])
            continue
        code = LINE.match(line)
        if code and current:
            current.code.append((int(code[1], 16), code[2]))
    return functions


def owner_map(functions):
    return {address: start for start, f in functions.items() for address, _ in f.code}


def check(text, expected=EXPECTED):
    """Returns (names in the closure, faults)."""
    functions = read(text)
    owner = owner_map(functions)
    todo = [a for a, f in functions.items() if f.name.startswith(ROOT)]
    if not todo:
        return [], [f"no function {ROOT}...) in the binary"]
    seen, faults = set(todo), []

    def follow(address):
        start = owner.get(address)
        if start is None:
            return False
        if start not in seen and not functions[start].name.startswith(NOT_HIT_PATH):
            seen.add(start)
            todo.append(start)
        return True

    while todo:
        f = functions[todo.pop()]
        for address, instruction in f.code:
            where = f"{f.name} at {address:x}: {instruction}"
            if BANNED.match(instruction):
                faults.append(where)
            flow = FLOW.match(instruction)
            if not flow:
                continue
            kind, indirect, target = flow.groups()
            if not indirect:
                direct = re.match(r"([0-9a-f]+)", target)
                if not (direct and follow(int(direct[1], 16))) and not MAY_CALL_OUTSIDE.search(target):
                    faults.append(where)
            elif KERNEL_POINTER in target:
                for start, k in functions.items():
                    if k.name.startswith(KERNELS):
                        follow(start)
            elif kind == "jmp" and "#" not in target:
                pass  # a switch's table
            elif not MAY_CALL_OUTSIDE.search(target):
                faults.append(where)
    names = sorted(functions[a].name for a in seen)
    faults += [f"the closure lacks {e}" for e in expected if not any(e in n for n in names)]
    # A symbol from the PLT stands in the disassembly as a function of its own.
    faults += [f"calls {n}" for n in names if n.endswith("@plt") and not re.match(r"mem(cpy|move|set|cmp)@", n)]
    return names, faults


def try_itself():
    def program(body, helper="ret"):
        return (f"0000000000000010 <{ROOT}X)>:\n      10:\tcall   20 <helper()>\n      15:\t{body}\n"
                f"0000000000000020 <helper()>:\n      20:\t{helper}\n"
                f"0000000000000030 <{NOT_HIT_PATH[0]}X)>:\n      30:\tlock xadd %eax,(%rdx)\n")

    clean = ("ret", "xchg   %ax,%ax", "jmp    *%rax", "call   30 <x>", "call   *0x8(%rip)  # 99 <memcpy@GLIBC_2.14>")
    faulty = ("lock xadd %eax,0x8(%rdx)", "lock cmpxchg %rcx,(%rsi)", "xchg   %eax,(%rdx)", "mfence", "lfence",
              "sfence", "syscall", "call   *%rax", "call   *0x10(%rax)", "call   *0x8(%rip)  # 99 <malloc@GLIBC_2.2.5>",
              "call   99 <outside>")
    for body in clean:
        assert check(program(body), ())[1] == [], body
    for body in faulty:
        assert check(program(body), ())[1] != [], body
        assert check(program("ret", helper=body), ())[1] != [], body
    assert check("", ())[1] != []
    assert check(program("ret"), ("find_bulk",))[1] != []


def main():
    try_itself()
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-C", sys.argv[1]], check=True, text=True,
                          stdout=subprocess.PIPE).stdout
    names, faults = check(text)
    for name in names:
        print("hit path:", name)
    for fault in faults:
        print("FAULT:", fault)
    print(f"{len(names)} functions, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
