"""What a child process of the lab is given: it begins in another folder than the command that starts it."""

from __future__ import annotations

import os
import sys

from ledger.addresses import BASE_DIR, addresses, lab_dir


def import_path() -> str:
    """PYTHONPATH: the lab, and wherever this process looks, so that a child finds a stranger's lock too
    (loadtest/commandline/subjects.py: it may lie where the command was given)."""
    here = (os.path.abspath(entry) for entry in sys.path)
    return os.pathsep.join(dict.fromkeys([str(BASE_DIR), *here]))


def child_environment() -> dict[str, str]:
    """Our environment, with the servers that we know, and no path that means another folder there."""
    given = {"LAB_DIR": str(lab_dir().absolute()), "PYTHONPATH": import_path()}
    return {**os.environ, **addresses(), **given}
