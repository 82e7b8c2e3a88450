#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the system tests, one line each, and writes their results as JUnit XML.

    run.py [--build FOLDER] [--junit FILE] [--jobs N] [--but] [PATTERN...]
        tests whose name holds one of the patterns, or all --but these; all without

Several classes of tests may run side by side, for each has namespaces of its own, and mostly they wait. A class that
measures what a busy machine would spoil says `alone = True`: nothing of ours runs beside it. Data planes find huge
pages: to touch a hundred MiB page by page is most of their start."""
import argparse
import concurrent.futures
import itertools
import os
import pathlib
import re
import sys
import time
import unittest
import xml.etree.ElementTree as ET

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / 'scripts'))
import huge_pages  # noqa: E402


class Results(unittest.TestResult):
    """`notes`: (test's name, outcome, seconds, detail)"""

    def __init__(self):
        super().__init__()
        self.notes = []
        self.began = time.monotonic()

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def note(self, test, outcome, detail=''):
        seconds = time.monotonic() - self.began
        print(f'{outcome:8}{test.id()}  {seconds:.1f} s', flush=True)
        self.notes.append((test.id(), outcome, seconds, detail))

    def addSuccess(self, test):
        self.note(test, 'ok')

    def addFailure(self, test, err):
        self.note(test, 'FAILED', self._exc_info_to_string(err, test))

    def addError(self, test, err):
        self.note(test, 'FAILED', self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        if err:
            self.note(subtest, 'FAILED', self._exc_info_to_string(err, subtest))

    def addSkip(self, test, reason):
        self.note(test, 'skipped', reason)


def chosen(suite, patterns, but):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from chosen(test, patterns, but)
        elif not patterns or any(p in test.id() for p in patterns) != but:
            yield test


def run(tests):
    results = Results()
    unittest.TestSuite(tests).run(results)
    return results.notes


def mixed(classes):
    """The first half's between the second's: some files' tests wait, others' work."""
    middle = (len(classes) + 1) // 2
    pairs = itertools.zip_longest(classes[:middle], classes[middle:])
    return [group for pair in pairs for group in pair if group]


def huge_pages_wanted():
    """Enough for all lanes, and never more than an eighth of what the machine has free."""
    available = re.search(r'MemAvailable: *(\d+) kB', pathlib.Path('/proc/meminfo').read_text()).group(1)
    return min(1024, int(available) // 2048 // 8)


def junit(notes):
    suite = ET.Element('testsuite', name='system')
    for test, outcome, seconds, detail in notes:
        kind, _, name = test.rpartition('.')
        case = ET.SubElement(suite, 'testcase', classname=kind, name=name, time=f'{seconds:.3f}')
        if outcome != 'ok':
            element = ET.SubElement(case, 'skipped' if outcome == 'skipped' else 'failure', message=detail[:200])
            element.text = detail
    return ET.ElementTree(suite)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.environ.get('MARGAY_BUILD'))
    parser.add_argument('--junit')
    parser.add_argument('--jobs', type=int, default=1)
    parser.add_argument('--but', action='store_true')
    parser.add_argument('patterns', nargs='*')
    args = parser.parse_args()
    if args.build:
        os.environ['MARGAY_BUILD'] = str(pathlib.Path(args.build).resolve())
    sys.path.insert(0, str(HERE))
    tests = chosen(unittest.defaultTestLoader.discover(str(HERE), 'test_*.py'), args.patterns, args.but)
    classes = [list(group) for _, group in itertools.groupby(tests, type)]
    notes = []
    whole = True
    try:
        alone = [group for group in classes if args.jobs == 1 or getattr(group[0], 'alone', False)]
        with huge_pages.lent(huge_pages_wanted()):
            with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
                for found in pool.map(run, mixed([group for group in classes if group not in alone])):
                    notes += found
            for group in alone:
                notes += run(group)
    except KeyboardInterrupt:
        whole = False
        print('interrupted: the tests after this did not run')
    failed = [detail for _, outcome, _, detail in notes if outcome == 'FAILED']
    if args.junit:
        junit(notes).write(args.junit, encoding='utf-8')
    else:
        print('\n'.join(failed))
    return 0 if whole and notes and not failed else 1


if __name__ == '__main__':
    sys.exit(main())
