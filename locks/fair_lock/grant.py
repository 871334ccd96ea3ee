"""One holding of a fair lock by one thread: its number, its lease, and whether it was lost."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from locks.fair_lock.questions import Question, Questions, unpacked

_log = logging.getLogger(__name__)


class Terms:
    """What all grants of one lock object share. Seconds: `lease`, and `cap`, after which renewal ends."""

    def __init__(
        self,
        lock: Any,
        questions: Questions,
        lease: float,
        cap: float,
        on_lost: Callable[[Any], None] | None,
    ) -> None:
        self.lock = weakref.ref(lock)  # weak: a lock that nobody can release any more must not be renewed
        self.questions, self.lease, self.cap, self.on_lost = questions, lease, cap, on_lost


class Grant:
    """Times are seconds on `time.monotonic()`'s clock."""

    lost = False
    depth = 1

    def __init__(
        self,
        word: bytes,
        number: int,
        since: float,
        terms: Terms,
        thread: threading.Thread,
        gives_back: Question,
    ) -> None:
        """`word`: the packed token. `since`: when the lease began, or shortly before."""
        self.word, self.number, self.terms, self.thread = word, number, terms, thread
        self.since = self._extended = since
        self.gives_back = gives_back

    @property
    def token(self) -> bytes:
        return unpacked(self.word)

    def renewed(self, asked: float) -> None:
        self.since = asked

    def extended(self, asked: float) -> None:
        """The holder extended it: the time to the cap restarts too."""
        self.since = self._extended = asked

    @property
    def held(self) -> bool:
        return not self.lost and time.monotonic() < self.since + self.terms.lease

    @property
    def renewable(self) -> bool:
        """False from the cap on, and once the thread that holds the lock has died without a release."""
        return time.monotonic() - self._extended < self.terms.cap and self.thread.is_alive()

    def lose(self, *, aside: bool = False) -> None:
        """Tell the holder, once. `aside`: in a new thread, because the renewal has other locks to renew."""
        told, self.lost = self.lost, True
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
    except Exception:  # noqa: BLE001  the holder must hear LockLost, whatever the callback raises
        _log.exception("%s: the on_lost callback failed", lock.name)


class Grants(dict[threading.Thread, Grant]):
    """The grants of one lock object, by thread object: the id of a dead thread is reused, its object is not."""

    def __init__(self, lease: float, generation: int) -> None:
        super().__init__()
        self.lease, self._generation = lease, generation
        self.watched = False  # by its client's renewal

    __hash__, __eq__ = object.__hash__, object.__eq__  # type: ignore[assignment]

    @property
    def held(self) -> bool:
        """Whether any thread holds it and has not been told of a loss."""
        return any(not grant.lost for grant in list(self.values()))

    def of_generation(self, generation: int) -> None:
        """This thread was granted the lock in this generation of the process. In a forked child, drop the parent's
        other grants."""
        if generation != self._generation:
            self._generation = generation
            for thread in [each for each in self if each is not here.thread]:
                del self[thread]

    def own(self, generation: int) -> Grant | None:
        """Return this thread's grant. A forked child, which is another generation, holds nothing."""
        if generation != self._generation:
            self._generation, self.watched = generation, False
            self.clear()
        return self.get(here.thread)


class CallingThread(threading.local):
    """`here.thread`: the calling thread."""

    def __init__(self) -> None:
        self.thread = threading.current_thread()


here = CallingThread()
