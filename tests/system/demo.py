#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The demo: a client behind a forwarder, the SCI with two workers, three instances with nginx and unbound, all in
network namespaces that go again at the end. First the data plane alone, then the site with its control plane, then two
SCIs with a C-SMA and a C-PS. One line a step; exit status 0 only if every step held. Run by scripts/demo.
demo.py [--json] [--part alone|site|cats]"""
import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time

from dataplane import BUILD, CommandFailed
from demo_alone import Alone
from demo_cats import Cats
from demo_site import WithControl
from net import Net
from peers import Instance

PARTS = {'alone': Alone, 'site': WithControl, 'cats': Cats}


class Demo:
    def __init__(self, as_json):
        self.as_json = as_json
        self.steps = []
        self.folder = BUILD / 'demo'
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def tell(self, line):
        if not self.as_json:
            print(line, flush=True)

    def step(self, ok, what, **numbers):
        self.steps.append({'ok': bool(ok), 'what': what, 'numbers': numbers})
        self.tell(f'{"ok    " if ok else "FAILED"}  {what}')

    def run(self, parts):
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            self.memory = stack.enter_context(tempfile.TemporaryDirectory(dir='/dev/shm', prefix='margay-'))
            self.net = Net()
            stack.callback(self.net.close)
            self.instances = [Instance(self.net, name, self.folder) for name in self.net.instances]
            for part in parts:
                PARTS[part](self).run()
        passed = all(step['ok'] for step in self.steps)
        self.tell(f'{"All" if passed else "NOT all"} {len(self.steps)} steps held; {time.monotonic() - began:.0f} s')
        return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--json', action='store_true', help='one JSON document instead of lines')
    parser.add_argument('--part', choices=PARTS, help='one part only')
    args = parser.parse_args()
    demo = Demo(args.json)
    problem = None
    try:
        passed = demo.run([args.part] if args.part else PARTS)
    except (CommandFailed, RuntimeError, OSError, subprocess.SubprocessError, LookupError, ValueError) as e:
        passed, problem = False, f'{type(e).__name__}: {e}'
    except KeyboardInterrupt:
        passed, problem = False, 'interrupted'
    if demo.as_json:
        print(json.dumps({'passed': passed, 'problem': problem, 'steps': demo.steps}, indent=2))
    elif problem:
        print(f'FAILED  {problem}')
    return 0 if passed else 1


if __name__ == '__main__':
    sys.exit(main())
