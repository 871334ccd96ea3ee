"""When Python looks for garbage: between two runs, and only among what has come since the last time.

A collection runs finalizers and callbacks in whatever thread is at it, and they may read clocks: not within a run. Lost
connections wait in cycles with their errors, and a server has room for a hundred, so somebody has to look. But what a
search has learned is millions of objects that stay: half a second for each look at all of them. Without freezing them
a search took 1.15 times the CPU (2 workers) and 1.09 times (3 workers): decision 27.
"""

from __future__ import annotations

import gc
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


def collect(*, keep: bool) -> None:
    """Look now. `keep`: and never again at what is left by then; somebody thaws it at the end, a search or a lane."""
    gc.collect()
    if keep:
        gc.freeze()
