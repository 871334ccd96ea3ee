"""When Python collects garbage: between two runs, and only among the objects that are new since the last collection.

A collection runs finalizers and callbacks in whatever thread triggers it, and these may read clocks. So it must not
happen within a run. Lost connections wait in cycles with their errors, and a server has room for a hundred, so it must
happen at some time. But what a search has learned is millions of objects that stay, and each look at all of them takes
half a second. Without freezing them a search took 1.15 times the CPU (2 workers) and 1.09 times (3 workers):
decision 27. Where Python itself chose when to collect between two runs, that took 15 % of the longest search's
CPU time (renewal-service), and now takes 6 %.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def not_now() -> Iterator[None]:
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


_frozen: list[None] = []


@contextmanager
def frozen() -> Iterator[None]:
    """What exists now stays until the outermost of these blocks ends: no collection looks at it again.

    They are counted, because `gc.get_freeze_count` walks over all that is frozen: 16 % of the CPU time of the engine's
    tests.
    """
    _frozen.append(None)
    _freeze()
    try:
        yield
    finally:
        _frozen.pop()
        if not _frozen:
            gc.unfreeze()


_thawed: list[None] = []


@contextmanager
def thawed() -> Iterator[None]:
    """gc.get_referrers looks at what is frozen, too, until the outermost of these blocks ends."""
    frozen = not _thawed and bool(_frozen or gc.get_freeze_count())
    gc.unfreeze()
    _thawed.append(None)
    try:
        yield
    finally:
        _thawed.pop()
        if frozen:
            _freeze()


def _freeze() -> None:
    gc.collect(1)  # connections that were lost a moment ago must not stay
    gc.freeze()


def held_in_memory() -> int:
    """How many objects this process holds, roughly. It takes 0.5 ms where `gc.get_freeze_count`, which walks over all
    that is frozen, takes 25 (two million dicts and lists)."""
    return sys.getallocatedblocks()


def collect_all_beyond(count: int) -> None:
    """Collect and keep what is left. Look at what is frozen too if the process holds more than `count` objects."""
    if held_in_memory() > count:
        gc.unfreeze()
    collect(keep=True)


def collect(*, keep: bool) -> None:
    """Collect now. `keep`: never look again at what is left by then. A search or a lane thaws it at its end."""
    gc.collect()
    if keep:
        gc.freeze()
