# SPDX-License-Identifier: Apache-2.0
"""A control plane without a head: tests/support/table_writer.cc, a word and what follows it, and the answer."""
import json
import signal
import subprocess

from dataplane import BUILD

WRITER = BUILD / 'tests' / 'support' / 'table_writer'


class Control:
    def __init__(self, case):
        self.net = case.net
        self.process = self.net.start('sci', WRITER, case.control, case.dataplane.site, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)

    def ask(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def commit(self):
        told = self.ask('commit')
        assert told.get('acked'), told
        return told['generation']

    def end(self, sig=signal.SIGKILL):
        self.net.stop(self.process, sig)
        for pipe in (self.process.stdin, self.process.stdout):
            pipe.close()
