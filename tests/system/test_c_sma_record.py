# SPDX-License-Identifier: Apache-2.0
"""What a running C-SMA is told is recorded, and its replay wants the very same."""
import json
import pathlib
import subprocess

from c_sma_case import CSmaAlone, Reporter
from case import await_true
from control import PROGRAM

ACTIONS = {'commit', 'pull_wanted', 'judged', 'close_stream', 'source_changed', 'first_round_over', 'audit'}


class Recorded(CSmaAlone):
    def test_a_recorded_run_comes_out_as_it_was(self):
        recording, replayed = f'{self.here}/events.jsonl', f'{self.here}/actions.jsonl'
        self.start(arguments=('--record', recording))
        vrs = Reporter(self, 'vrs', self.VRS, 'VRS')
        vrs.report(10)
        self.assertEqual(vrs.report(10, sequence=1)['verdict'], 'REFUSED')
        self.web.gas = 90
        self.await_held('WEB', self.WEB, 90)
        await_true('the silent SCI is FAILED', lambda: self.source(self.VRS) == 'FAILED', 15)
        self.c_sma.run('reload')
        self.c_sma.stop()
        self.start_c_sma('c-sma-2', arguments=('--record', recording))
        self.await_equal()
        self.c_sma.stop()

        done = subprocess.run([PROGRAM, 'replay', '--in', recording, '--out', replayed], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ''))
        lines = pathlib.Path(recording).read_text().splitlines(True)
        wanted = [line for line in lines if ACTIONS & json.loads(line).keys()]
        self.assertEqual(''.join(wanted), pathlib.Path(replayed).read_text())
        kinds = {kind for line in wanted for kind in json.loads(line)} & ACTIONS
        self.assertLessEqual({'commit', 'judged', 'source_changed', 'audit', 'first_round_over'}, kinds)
