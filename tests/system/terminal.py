# SPDX-License-Identifier: Apache-2.0
"""A program on a pseudo terminal, with a hand at its keys."""
import os
import pty
import select
import subprocess
import termios
import time


class Terminal:
    def __init__(self, *command, env=None):
        self.master, self.slave = pty.openpty()
        self.seen = ''
        self.process = subprocess.Popen(command, stdin=self.slave, stdout=self.slave, stderr=self.slave,
                                        env={**os.environ, 'TERM': 'xterm', **(env or {})}, start_new_session=True)

    def type(self, keys):
        os.write(self.master, keys.encode())

    def read_until(self, text, seconds=5):
        """What is on the terminal up to the text, and little more: the rest waits there, as far as it has room."""
        until = time.monotonic() + seconds
        while text not in self.seen:
            if time.monotonic() > until:
                raise AssertionError(f'no {text!r} on the terminal, but {self.seen!r}')
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 1024).decode(errors='replace')
        before, _, self.seen = self.seen.partition(text)
        return before + text

    def stop_output(self):
        """As ^S does."""
        termios.tcflow(self.slave, termios.TCOOFF)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)
