# SPDX-License-Identifier: Apache-2.0
"""Certificates for a test's site, by scripts/pki."""
import pathlib
import subprocess

from dataplane import ROOT


class Pki:
    """What one class of tests asked for is there for the next in this process: keys and certificates of the CA of the
    same folder's name are made once."""
    made = {}                               # by CA and words: what came of them, {file: bytes}

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.run('init')

    def run(self, *words):
        key = (self.folder.name, *map(str, words))
        if key in self.made:
            for name, content in self.made[key].items():
                file = self.folder / name
                file.parent.mkdir(exist_ok=True, parents=True)
                file.write_bytes(content)
            return
        before = self._files()
        done = subprocess.run([ROOT / 'scripts' / 'pki', *self._options(words), self.folder, *self._rest(words)],
                              capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f'pki {" ".join(map(str, words))}: {done.stderr}')
        if not {'revoke', 'crl'} & set(words):
            self.made[key] = {name: (self.folder / name).read_bytes() for name in self._files() - before}

    def _files(self):
        return {str(f.relative_to(self.folder)) for f in self.folder.rglob('*') if f.is_file()}

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
