# SPDX-License-Identifier: Apache-2.0
"""Certificates for a test's site, by scripts/pki."""
import subprocess

from dataplane import ROOT


class Pki:
    def __init__(self, folder):
        self.folder = folder
        self.run('init')

    def run(self, *words):
        done = subprocess.run([ROOT / 'scripts' / 'pki', *self._options(words), self.folder, *self._rest(words)],
                              capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f'pki {" ".join(map(str, words))}: {done.stderr}')

    @staticmethod
    def _options(words):
        """Those before the order: each with its value."""
        n = 0
        while n < len(words) and str(words[n]).startswith('--'):
            n += 2
        return [str(w) for w in words[:n]]

    @classmethod
    def _rest(cls, words):
        return [str(w) for w in words[len(cls._options(words)):]]

    def file(self, name):
        return f'{self.folder}/{name}'

    def section(self, name, signing_key=None, believes=None):
        """What a site file says of who `name` is. Makes nothing. `believes`: the Pki of its peers, if not this one."""
        peers = believes or self
        text = ('security:\n'
                f'  ca: {peers.file("ca.pem")}\n  crl: {peers.file("crl.pem")}\n'
                f'  certificate: {self.file(name + ".pem")}\n  key: {self.file(name + ".key")}\n')
        if signing_key:
            text += f'  signing_key: {{id: {signing_key}, file: {self.file(signing_key + ".sign.key")}}}\n'
        return text
