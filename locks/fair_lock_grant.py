"""One holding of a fair lock by one thread: its number, its lease, and whether it was lost."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from locks.call import unpacked
from locks.fair_lock_attempt import Calls

_log = logging.getLogger(__name__)


class Terms:
    """What all grants of one lock object have in common. Seconds: `lease`, and `cap`, when renewal ends."""

    def __init__(
        self, lock: Any, calls: Calls, lease: float, cap: float, on_lost: Callable[[Any], None] | None
    ) -> None:
        self.lock = weakref.ref(lock)  # weak: a lock that nobody can release any more is not renewed
        self.name, self.calls, self.lease, self.cap, self.on_lost = lock.name, calls, lease, cap, on_lost


class Grant:
    """Times are seconds on `time.monotonic()`'s clock."""

    __slots__ = ("acquired", "depth", "free", "lost", "number", "since", "terms", "thread", "word")

    def __init__(
        self, word: bytes, number: int, since: float, free: bool, terms: Terms, thread: threading.Thread
    ) -> None:
        """`word`: the packed token. `since`: when the lease began, or a moment before. `free`: nobody had it."""
        self.word, self.number, self.terms, self.thread = word, number, terms, thread
        self.since = self.acquired = since
        self.free = free
        self.lost = False
        self.depth = 1

    @property
    def token(self) -> bytes:
        return unpacked(self.word)

    @property
    def held(self) -> bool:
        return not self.lost and time.monotonic() < self.since + self.terms.lease

    @property
    def renewable(self) -> bool:
        """Renewal ends at the cap, and when the thread that holds the lock died without a release."""
        return time.monotonic() - self.acquired < self.terms.cap and self.thread.is_alive()

    def lose(self) -> None:
        """Tell the holder, once."""
        told, self.lost = self.lost, True
        lock, on_lost = self.terms.lock(), self.terms.on_lost
        if told or lock is None or on_lost is None:
            return
        try:
            on_lost(lock)
        except Exception:  # noqa: BLE001  whatever it is, the other locks must be renewed
            _log.exception("%s: the on_lost callback failed", self.terms.name)


class Grants:
    """Of one lock object, by thread."""

    def __init__(self, generation: int) -> None:
        self._by_thread: dict[threading.Thread, Grant] = {}
        self._generation = generation

    def __bool__(self) -> bool:
        return bool(self._by_thread)

    def __iter__(self) -> Iterator[Grant]:
        return iter(list(self._by_thread.values()))

    def add(self, grant: Grant) -> None:
        self._by_thread[grant.thread] = grant

    def pop(self, thread: threading.Thread) -> Grant | None:
        return self._by_thread.pop(thread, None)

    def own(self, generation: int) -> Grant | None:
        """This thread's. Of another generation of the process: a forked child holds nothing."""
        if generation != self._generation:
            self._generation = generation
            self._by_thread.clear()
        return self._by_thread.get(threading.current_thread())
