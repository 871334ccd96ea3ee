"""The gate of imports: a module that is loaded inside of an operation is loaded at once.

If its worker stood still there, at a clock that the module reads, another worker that needs the same module would wait
for the interpreter's own lock.
"""

from __future__ import annotations

from importlib import _bootstrap
from typing import Any

from lost_update_lab.gates.patch import Patches
from lost_update_lab.runs.place import beside

_load = _bootstrap._find_and_load  # type: ignore[attr-defined]


def load(name: str, *args: Any) -> Any:
    """Called for a module that is not there yet."""
    with beside():
        return _load(name, *args)


def install(patches: Patches) -> None:
    patches.method(_bootstrap, "_find_and_load", load)
