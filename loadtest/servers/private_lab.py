"""Servers for a single run. The run may kill them, and its data is removed with them."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ledger.addresses import ADDRESS_NAMES
from lost_update_lab.embedded.reaper import REAPER


@contextmanager
def private_lab(name: str, *, keep: bool = False) -> Iterator[Path]:
    """Make a folder for a run. Inside the block, `embedded.using()` starts servers there and knows of no others.

    Only for a program that does nothing else: the environment of this process stays changed. `keep`: leave the folder
    and print its path.
    """
    folder = Path(tempfile.mkdtemp(prefix=f"lab-{name}-"))
    for address in ADDRESS_NAMES:
        os.environ.pop(address, None)
    os.environ["LAB_DIR"] = str(folder / "lab")
    if not keep:
        REAPER.remove(folder)
    try:
        yield folder
    finally:
        if keep:
            print(f"Kept: {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
            REAPER.keep(folder)
