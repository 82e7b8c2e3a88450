#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the test cases of a folder of JUnit files: tells the skipped ones with their reason, the failed ones with
their whole log, and ends with `N passed, N failed, N skipped`. Exit status 1 when one failed.

--suite NAME:STATUS says that NAME.xml must be there and how its run ended: no file, or a run that ended badly though
no case of it failed (it was killed, or ran out of time), is a failure too."""
import argparse
import pathlib
import sys
import xml.etree.ElementTree as ET


def cases_of(file):
    """(name, outcome, detail) of each test case of a file. Outcome: passed, failed or skipped."""
    for suite in ET.parse(file).getroot().iter('testsuite'):
        for case in suite.findall('testcase'):
            in_meson = case.get('classname') == suite.get('name')  # a program that meson judged by its exit status
            name = case.get('name') if in_meson else f"{suite.get('name')}.{case.get('name')}"
            name = name.rpartition('margay:')[2]
            output = '\n'.join(e.text for tag in ('system-out', 'system-err') for e in case.findall(tag) if e.text)
            bad = case.findall('failure') + case.findall('error')
            skipped = case.find('skipped')
            if bad:
                yield name, 'failed', '\n'.join([e.text or e.get('message') or '' for e in bad] + [output])
            elif skipped is not None or case.get('status') == 'notrun':
                reason = output if skipped is None else skipped.get('message') or skipped.text or output
                yield name, 'skipped', reason or 'no reason given'
            else:
                yield name, 'passed', ''


def all_cases(folder, suites):
    for suite in suites:
        name, status = suite.split(':')
        try:
            found = list(cases_of(folder / f'{name}.xml'))
        except (OSError, ET.ParseError) as error:
            log = folder / f'{name}.log'
            yield name, 'failed', f'no usable result: {error}\n' + (log.read_text() if log.exists() else '')
            continue
        yield from found
        if status != '0' and not any(outcome == 'failed' for _, outcome, _ in found):
            yield name, 'failed', f'the run ended with status {status} though no test case of it failed'


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--suite', action='append', default=[])
    parser.add_argument('folder', type=pathlib.Path)
    args = parser.parse_args()
    count = dict(passed=0, failed=0, skipped=0)
    for name, outcome, detail in all_cases(args.folder, args.suite):
        count[outcome] += 1
        if outcome == 'skipped':
            print(f"skipped: {name}: {' '.join(detail.split())}")
        elif outcome == 'failed':
            print(f'FAILED: {name}\n{detail.strip()}')
    if not any(count.values()):
        print('FAILED: no test case was found')
        count['failed'] = 1
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count['failed'] else 0


if __name__ == '__main__':
    sys.exit(main())
