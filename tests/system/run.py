#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the system tests, one line each, and writes their results as JUnit XML.

    run.py [--build FOLDER] [--junit FILE] [--but] [PATTERN...]
        tests whose name holds one of the patterns, or all --but these; all without

Several may run side by side: each has namespaces of its own."""
import argparse
import os
import pathlib
import sys
import time
import unittest
import xml.etree.ElementTree as ET

HERE = pathlib.Path(__file__).resolve().parent


class Results(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.suite = ET.Element('testsuite', name='system')
        self.began = time.monotonic()

    def startTest(self, test):
        super().startTest(test)
        self.began = time.monotonic()

    def note(self, test, outcome, detail=''):
        seconds = time.monotonic() - self.began
        print(f'{outcome:8}{test.id()}  {seconds:.1f} s', flush=True)
        kind, _, name = test.id().rpartition('.')
        case = ET.SubElement(self.suite, 'testcase', classname=kind, name=name, time=f'{seconds:.3f}')
        if outcome != 'ok':
            element = ET.SubElement(case, 'skipped' if outcome == 'skipped' else 'failure', message=detail[:200])
            element.text = detail

    def addSuccess(self, test):
        self.note(test, 'ok')

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.note(test, 'FAILED', self.failures[-1][1])

    def addError(self, test, err):
        super().addError(test, err)
        self.note(test, 'FAILED', self.errors[-1][1])

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err:
            self.note(subtest, 'FAILED', self._exc_info_to_string(err, subtest))

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, 'skipped', reason)


def chosen(suite, patterns, but):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from chosen(test, patterns, but)
        elif not patterns or any(p in test.id() for p in patterns) != but:
            yield test


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--build', default=os.environ.get('MARGAY_BUILD'))
    parser.add_argument('--junit')
    parser.add_argument('--but', action='store_true')
    parser.add_argument('patterns', nargs='*')
    args = parser.parse_args()
    if args.build:
        os.environ['MARGAY_BUILD'] = str(pathlib.Path(args.build).resolve())
    sys.path.insert(0, str(HERE))
    results = Results()
    tests = unittest.defaultTestLoader.discover(str(HERE), 'test_*.py')
    whole = True
    try:
        unittest.TestSuite(chosen(tests, args.patterns, args.but)).run(results)
    except KeyboardInterrupt:
        whole = False
        print('interrupted: the tests after this did not run')
    if args.junit:
        ET.ElementTree(results.suite).write(args.junit, encoding='utf-8')
    elif not results.wasSuccessful():
        print('\n'.join(text for _, text in results.failures + results.errors))
    return 0 if whole and results.wasSuccessful() and results.testsRun else 1


if __name__ == '__main__':
    sys.exit(main())
