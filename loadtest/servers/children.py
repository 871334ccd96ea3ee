"""The environment of the lab's child processes, which start in another folder than their command."""

from __future__ import annotations

import os
import sys

from ledger.addresses import BASE_DIR, addresses, lab_dir


def import_path() -> str:
    """Return a PYTHONPATH with the lab and this process's own folders. With these a child finds a user's lock in the
    folder where the command was given (loadtest/commandline/subjects.py)."""
    here = (os.path.abspath(entry) for entry in sys.path)
    return os.pathsep.join(dict.fromkeys([str(BASE_DIR), *here]))


def child_environment() -> dict[str, str]:
    """Return this process's environment with the addresses of its servers. All paths in it are absolute."""
    given = {"LAB_DIR": str(lab_dir().absolute()), "PYTHONPATH": import_path()}
    return {**os.environ, **addresses(), **given}
