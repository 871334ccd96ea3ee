"""An invariant is asked, in this thread: what it sends is no step, and shows that it looks at a server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class InvariantCall:
    """`of_a_server`: it has asked one."""

    of_a_server = False


class _Local(threading.local):
    asking: InvariantCall | None = None


_local = _Local()


@contextmanager
def asking() -> Iterator[InvariantCall]:
    """In here this thread asks for an invariant."""
    _local.asking = asking = InvariantCall()
    try:
        yield asking
    finally:
        _local.asking = None


def is_asking() -> bool:
    """Does this thread ask for an invariant?"""
    return _local.asking is not None


def asks_a_server() -> bool:
    """Something is about to be sent: is that for an invariant?"""
    if _local.asking:
        _local.asking.of_a_server = True
    return is_asking()
