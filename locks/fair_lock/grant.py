"""One holding of a fair lock by one thread: its number, its lease, and whether it was lost."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from operator import itemgetter
from typing import Any

from locks.fair_lock.attempt import Calls
from locks.fair_lock.call import unpacked
from locks.fair_lock.wire import REST

_log = logging.getLogger(__name__)


class Terms:
    """What all grants of one lock object have in common. Seconds: `lease`, and `cap`, when renewal ends."""

    def __init__(
        self, lock: Any, calls: Calls, lease: float, cap: float, on_lost: Callable[[Any], None] | None
    ) -> None:
        self.lock = weakref.ref(lock)  # weak: a lock that nobody can release any more is not renewed
        self.calls, self.lease, self.cap, self.on_lost = calls, lease, cap, on_lost
        self.half = lease / 2


class Grant(tuple[bytes, int | bytes, float, Terms, threading.Thread, bytes]):
    """(packed token, fencing number or what it was told by, since when, terms, thread, packed command that gives it
    back). Times: seconds on `time.monotonic()`'s clock.

    A tuple, because between two switches of the process each attribute that is set costs a third of a
    microsecond: only what is not as usual is an attribute.
    """

    usual = True  # entered once, and not lost
    lost = False
    depth = 1
    _renewed: float | None = None
    _extended: float | None = None

    __hash__, __eq__ = object.__hash__, object.__eq__
    word: bytes = property(itemgetter(0))  # type: ignore[assignment]
    terms: Terms = property(itemgetter(3))  # type: ignore[assignment]
    thread: threading.Thread = property(itemgetter(4))  # type: ignore[assignment]

    @property
    def number(self) -> int:
        told = self[1]
        if isinstance(told, int):
            return told
        return int(told[1:] if told[:1] == b":" else told[-REST:])  # a reply, or a message

    @property
    def deletes(self) -> bool:
        """Does a plain command give it back? It was free when it was asked for."""
        return self[5] == self.terms.calls.delete.packed

    @property
    def token(self) -> bytes:
        return unpacked(self[0])

    @property
    def since(self) -> float:
        """When the lease began, or a moment before."""
        return self[2] if self._renewed is None else self._renewed

    def renewed(self, asked: float) -> None:
        self._renewed = asked

    def extended(self, asked: float) -> None:
        """By the holder: the time to the cap begins anew, too."""
        self._renewed = self._extended = asked

    @property
    def held(self) -> bool:
        return not self.lost and time.monotonic() < self.since + self.terms.lease

    @property
    def renewable(self) -> bool:
        """Renewal ends at the cap, and when the thread that holds the lock died without a release."""
        began = self[2] if self._extended is None else self._extended
        return time.monotonic() - began < self.terms.cap and self.thread.is_alive()

    def lose(self, *, aside: bool = False) -> None:
        """Tell the holder, once. `aside`: by a thread of its own, as the renewal has other locks to renew."""
        told, self.lost, self.usual = self.lost, True, False
        lock, on_lost = self.terms.lock(), self.terms.on_lost
        if told or lock is None or on_lost is None:
            return
        if aside:
            with suppress(RuntimeError):  # no thread could be started
                threading.Thread(target=_tell, args=(on_lost, lock), name="lock-lost", daemon=True).start()
                return
        _tell(on_lost, lock)


def _tell(on_lost: Callable[[Any], None], lock: Any) -> None:
    try:
        on_lost(lock)
    except Exception:  # noqa: BLE001  whatever it is, the holder is to hear LockLost
        _log.exception("%s: the on_lost callback failed", lock.name)


class Grants(dict[threading.Thread, Grant]):
    """Of one lock object, by thread: the number of a dead thread may be another's soon, the thread is not."""

    def __init__(self, lease: float, generation: int) -> None:
        super().__init__()
        self.lease, self._generation = lease, generation
        self.watched = False  # by the renewal of its client

    __hash__, __eq__ = object.__hash__, object.__eq__  # type: ignore[assignment]

    @property
    def held(self) -> bool:
        """By any thread that has not been told of a loss."""
        return any(not grant.lost for grant in list(self.values()))

    def of_generation(self, generation: int) -> None:
        """This thread was granted the lock in this generation of the process: it holds what is its own alone."""
        if generation != self._generation:
            self._generation = generation
            for thread in [each for each in self if each is not here.thread]:
                del self[thread]

    def own(self, generation: int) -> Grant | None:
        """This thread's. Of another generation of the process: a forked child holds nothing."""
        if generation != self._generation:
            self._generation, self.watched = generation, False
            self.clear()
        return self.get(here.thread)


class Here(threading.local):
    """`here.thread`: the thread that asks."""

    def __init__(self) -> None:
        self.thread = threading.current_thread()


here = Here()
