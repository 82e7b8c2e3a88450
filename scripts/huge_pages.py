# SPDX-License-Identifier: Apache-2.0
"""Huge pages of 2 MiB for as long as something runs: lent, if the system has too few free, and given back."""
import contextlib
import os
import pathlib

RESERVED = pathlib.Path('/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages')
FREE = RESERVED.with_name('free_hugepages')


@contextlib.contextmanager
def lent(wanted):
    """Without root, and where the kernel has none of that size, there are none."""
    before = RESERVED.read_text().strip() if RESERVED.exists() else None
    lend = before is not None and os.geteuid() == 0 and int(FREE.read_text()) < wanted
    try:
        if lend:
            RESERVED.write_text(str(int(before) + wanted))
        yield
    finally:
        if lend:
            RESERVED.write_text(before)
