"""What processes of one machine share: multiprocessing's Value, Array, SharedMemory and locks. Who uses it passes no
gate, and workers stand for machines of their own.

Raw ctypes and mmap cannot be stopped. Whether operations have written to such an object of theirs is seen afterwards
(runs/look.py).
"""

from __future__ import annotations

import sys
from typing import Any

from lost_update_lab.gates.patch import Patches
from lost_update_lab.model.errors import Elsewhere
from lost_update_lab.model.workers import halt
from lost_update_lab.runs.place import here

TOLD = "an operation uses memory that processes share ({what}), and no gate sees who reads and writes it"
IN_A_SERVER = "keep it in the database, or in Redis: workers stand for machines of their own"
A_LOCK = (
    "it takes a lock that the processes of one machine share (multiprocessing's {what}), which protects nothing from "
    "another machine: workers stand for machines of their own"
)
ON_A_SERVER = "use what all machines share: a lock in the database, or in Redis"
#: the module, the class and its usual name → what looks into the memory
_LOOKS = {
    ("multiprocessing.sharedctypes", "Synchronized", "Value"): ("value", "__enter__", "get_obj", "get_lock"),
    ("multiprocessing.sharedctypes", "SynchronizedArray", "Array"): (
        "__getitem__",
        "__setitem__",
        "__enter__",
        "get_obj",
        "get_lock",
    ),
    ("multiprocessing.sharedctypes", "SynchronizedString", "Array"): ("value", "raw"),
    ("multiprocessing.shared_memory", "SharedMemory", "SharedMemory"): ("__init__", "buf"),
    ("multiprocessing.shared_memory", "ShareableList", "ShareableList"): ("__getitem__", "__setitem__"),
}


#: the classes of its locks, and what takes one. Each object keeps that as an attribute of its own
_SYNCHRONIZE, _TAKES = "multiprocessing.synchronize", frozenset({"acquire", "_semlock"})


def _look(what: str) -> None:
    if (place := here()) and not place.run.ending:
        place.run.error = Elsewhere(TOLD.format(what=what), IN_A_SERVER)
        halt(place.task)


def _taken(lock: Any, name: str) -> Any:
    """An attribute of one of its locks."""
    if name in _TAKES and (place := here()) and not place.run.ending:
        place.run.error = Elsewhere(A_LOCK.format(what=type(lock).__name__), ON_A_SERVER)
        halt(place.task)
    return object.__getattribute__(lock, name)


def _method(plain: Any, what: str) -> Any:
    def method(owner: Any, *args: Any, **keywords: Any) -> Any:
        _look(what)
        return plain(owner, *args, **keywords)

    return method


def _property(plain: property, what: str) -> property:
    getter, setter = plain.fget, plain.fset
    return property(getter and _method(getter, what), setter and _method(setter, what))


def install(patches: Patches) -> None:
    for (module, name, usual), looks in _LOOKS.items():
        if module not in sys.modules:
            continue
        owner = getattr(sys.modules[module], name)
        for each in looks:
            plain, what = getattr(owner, each), f"multiprocessing's {usual}"
            gated = _property(plain, what) if isinstance(plain, property) else _method(plain, what)
            patches.method(owner, each, gated)
    if locks := sys.modules.get(_SYNCHRONIZE):
        for owner in (locks.SemLock, locks.Condition):
            patches.method(owner, "__getattribute__", _taken)
