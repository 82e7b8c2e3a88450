#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""House rules that no compiler knows. One line a finding, exit status 1 when there is one.

Sizes: a function at most 70 lines, a file 400, three levels of nesting, a line 120 columns. Words: the hot path
neither allocates, logs, throws nor locks, and only dataplane/dpdk knows DPDK. TOLERATED may only shrink: an entry
that is not needed any more is a finding too."""
import pathlib
import re
import subprocess
import sys

FUNCTION_LINES, FILE_LINES, NESTING, COLUMNS = 70, 400, 3, 120

# (file, rule, function or word): exceptions, each with its reason.
TOLERATED = {
    ('tests/packet/connection_rows.cc', 'function', 'refusal_rows'): 'a table of rows',
    ('tests/packet/forwarding_rows.cc', 'function', 'nat_rows'): 'a table of rows',
    ('tests/packet/frame_rows.cc', 'function', 'frame_rows'): 'a table of rows',
    ('tests/unit/cli_commands_test.cc', 'file', ''): 'a case for every command',
}

BANNED_IN_HOT_PATH = {
    'allocation': r'\bnew\b(?!\s*\()|\bmalloc\(|\bmake_unique\b|\bmake_shared\b|\bstd::function\b',
    'output': r'\bprintf\b|\bspdlog\b|\bstd::cout\b|\bstd::cerr\b|\bfmt::',
    'throw': r'\bthrow\b',
    'lock': r'\bstd::(mutex|shared_mutex|lock_guard|unique_lock)\b',
    'DPDK': r'\brte_',
}
# Read once at start or by commands; everything else in dataplane/core runs per packet.
SET_UP_FILES = {f'dataplane/core/{name}' for name in (
    'layout_builder.cc', 'layout_builder.h', 'live_site.cc', 'live_site.h', 'shared_array.h', 'site_change.cc',
    'site_change.h', 'site_config.h', 'site_layout.h', 'site_table.cc', 'site_table.h')}
SOURCE = {'.h', '.cc'}
SCRIPT = {'.py', '.sh', ''}


def files():
    listed = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'], capture_output=True, text=True,
                            check=True).stdout.split('\n')
    return [pathlib.Path(f) for f in listed if f and pathlib.Path(f).is_file()]


def is_script(path):
    return path.suffix in SCRIPT and path.read_bytes()[:2] == b'#!'


def without_comments_and_strings(text):
    """The same text, same lines, with comments, string and character literals blanked out."""
    def blank(match):
        return re.sub(r'[^\n]', ' ', match.group(0))
    literal = r'R"(?P<d>[^(\s]*)\((?s:.*?)\)(?P=d)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\''
    return re.sub(r'//[^\n]*|/\*(?s:.*?)\*/|' + literal, blank, text)


def blocks(code):
    """(line of the opening brace, line of the closing one, text before the brace, depth of control blocks) of each
    pair of braces that is not part of an expression."""
    stack = []
    start = 0
    for i, c in enumerate(code):
        if c == '{':
            head = code[start:i].strip()
            if is_expression(head):
                stack.append(None)
                continue
            stack.append((code.count('\n', 0, i) + 1, head))
            start = i + 1
        elif c == '}' and stack:
            opened = stack.pop()
            if opened is None:
                continue
            line, head = opened
            controls = sum(1 for block in stack + [opened] if block and is_control(block[1]))
            yield line, code.count('\n', 0, i) + 1, head, controls
            start = i + 1
        elif c == ';' and not unclosed(code[start:i]):
            start = i + 1


def unclosed(text):
    return text.count('(') > text.count(')')


def is_expression(head):
    """Whether a brace behind this text holds values: an argument, or a member that a constructor sets."""
    if re.search(r'(\)|\]|\}|\bmutable|\bnoexcept|->[^(){};]*)$', head):
        return False
    return unclosed(head) or re.search(r'\)\s*(noexcept\s*)?:\s*\w(?s:.*)[\w>]$', head) is not None


def is_control(head):
    return re.match(r'(\}\s*)?(else\s+)?(if|for|while|switch|do|else)\b', head) is not None


def is_function(head):
    if is_control(head) or re.match(r'(namespace|class|struct|enum|union|extern)\b', head):
        return False
    while (plain := re.sub(r'\{[^{}]*\}', '()', head)) != head:
        head = plain
    return re.search(r'\)\s*(const|noexcept|override|final|->[^{]*|:\s[^{]*|\s)*$', head) is not None


def name_of(head):
    names = re.findall(r'([\w:~]+(?:<[^<>]*>::\w+)?)\s*\(', head)
    return names[0] if names else head[-30:]


def try_itself():
    """Functions with the lines from their opening brace to the closing one, as blocks() must see them."""
    for code, expected in (
            ('A::A(int x) : a_{x}, b_{T<int>{1}, 2} {\nf();\n}\n', [('A::A', 3)]),
            ('A::A()\n: a_(x), c_{x} {\nif (x) {\ng();\n}\n}\n', [('A::A', 5)]),
            ('void f() {\nfor (auto x : {1, 2}) {\nif (T{1} == x) g();\n}\n}\n', [('f', 5)]),
            ('void f() {\ng([&](int a) {\nh();\n}, T{1});\n}\n', [('g', 3), ('f', 5)])):
        found = [(name_of(head), last - first + 1) for first, last, head, _ in blocks(code) if is_function(head)]
        assert found == expected, (code, found)


def judge_sizes(path, text, code):
    count = text.count('\n')
    if count > FILE_LINES:
        yield 'file', '', 1, f'{count} lines, at most {FILE_LINES}'
    for first, last, head, controls in blocks(code):
        if is_function(head) and last - first + 1 > FUNCTION_LINES:
            name = name_of(head)
            yield 'function', name, first, f'{name} has {last - first + 1} lines, at most {FUNCTION_LINES}'
        if controls == NESTING + 1 and is_control(head):
            yield 'nesting', '', first, f'{controls} levels of nesting, at most {NESTING}'


def judge_words(path, code):
    in_core = path.parts[:2] == ('dataplane', 'core')
    hot = str(path) == 'dataplane/worker.h' or (in_core and str(path) not in SET_UP_FILES)
    dpdk = path.parts[:2] == ('dataplane', 'dpdk') or path.parts[0] in ('tests', 'bench')
    for number, line in enumerate(code.split('\n'), 1):
        for rule, pattern in BANNED_IN_HOT_PATH.items():
            applies = not dpdk if rule == 'DPDK' else hot and not line.lstrip().startswith('#')
            if applies and (found := re.search(pattern, line)):
                yield rule, found.group(0).strip(), number, f'"{found.group(0).strip()}" is not for this file ({rule})'


def judge_lines(path, text):
    if 'SPDX-License-Identifier: Apache-2.0' not in '\n'.join(text.split('\n')[:3]):
        yield 'spdx', '', 1, 'no line "SPDX-License-Identifier: Apache-2.0" at the top'
    for number, line in enumerate(text.split('\n'), 1):
        if len(line) > COLUMNS:
            yield 'columns', '', number, f'{len(line)} columns, at most {COLUMNS}'
        if '\t' in line:
            yield 'tab', '', number, 'a tab; indent with spaces'
        if line != line.rstrip():
            yield 'trailing', '', number, 'trailing space'
        if re.search(r'\b(TODO|FIXME)\b(?!\(#\d+\))', line) and path.name != 'tidy.py':
            yield 'todo', '', number, 'TODO or FIXME without the number of its issue: TODO(#12)'
    if not text.endswith('\n') or text.endswith('\n\n'):
        yield 'end', '', text.count('\n'), 'must end with one newline'


def judge(path):
    text = path.read_text()
    yield from judge_lines(path, text)
    if path.suffix in SOURCE:
        code = without_comments_and_strings(text)
        code_lines = '\n'.join('' if line.lstrip().startswith('#') else line for line in code.split('\n'))
        yield from judge_sizes(path, text, code_lines)
        yield from judge_words(path, code)
        if path.suffix == '.h' and '#pragma once' not in text:
            yield 'once', '', 1, 'no #pragma once'


def main():
    try_itself()
    used, bad = set(), 0
    for path in files():
        if path.suffix not in SOURCE and path.name != 'meson.build' and not is_script(path) and path.suffix != '.py':
            continue
        for rule, what, line, message in judge(path):
            if rule == 'spdx' and path.name == 'meson.build':
                continue
            if (str(path), rule, what) in TOLERATED:
                used.add((str(path), rule, what))
                continue
            bad += 1
            print(f'{path}:{line}: {message}')
    for entry in sorted(TOLERATED.keys() - used):
        bad += 1
        print(f'scripts/tidy.py: tolerated exception {entry} is not needed any more: take it out')
    return 1 if bad else 0


if __name__ == '__main__':
    sys.exit(main())
