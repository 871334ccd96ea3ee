"""The command that does something again, as it works where the user stands: this Python, this manage.py, this path."""

from __future__ import annotations

import os
import shlex
import shutil
import sys

MANAGE = "manage.py"


def again(*words: str, third_party: bool = False) -> str:
    """`words`: a command of manage.py, and its options. `third_party`: they name a module of the user's own, which may
    have been found by PYTHONPATH."""
    path = os.environ.get("PYTHONPATH", "") if third_party else ""
    where = f"PYTHONPATH={shlex.quote(path)} " if path else ""
    return where + " ".join([_python(), *map(shlex.quote, (_manage(), *words))])


def _manage() -> str:
    begun = sys.argv[0] if sys.argv else ""
    return begun if os.path.basename(begun) == MANAGE else MANAGE


def _python() -> str:
    """What the user may call it: by its name, if that is this one here."""
    if not (sys.argv and os.path.basename(sys.argv[0]) == MANAGE):
        return "python"
    mine = os.path.abspath(sys.executable)
    for name in ("python", "python3"):
        if (found := shutil.which(name)) and os.path.abspath(found) == mine:
            return name
    near = os.path.relpath(mine)
    return shlex.quote(mine if near.startswith(os.pardir) else near)
