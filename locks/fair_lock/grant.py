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
    """What all grants of one lock object have in common. Seconds: `lease`, and `cap`, when renewal ends."""

    def __init__(
        self,
        lock: Any,
        questions: Questions,
        lease: float,
        cap: float,
        on_lost: Callable[[Any], None] | None,
    ) -> None:
        self.lock = weakref.ref(lock)  # weak: a lock that nobody can release any more is not renewed
        self.questions, self.lease, self.cap, self.on_lost = questions, lease, cap, on_lost


class Grant:
    """Times: seconds on `time.monotonic()`'s clock."""

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
        """`word`: the packed token. `since`: when the lease began, or a moment before."""
        self.word, self.number, self.terms, self.thread = word, number, terms, thread
        self.since = self._extended = since
        self.gives_back = gives_back

    @property
    def token(self) -> bytes:
        return unpacked(self.word)

    def renewed(self, asked: float) -> None:
        self.since = asked

    def extended(self, asked: float) -> None:
        """By the holder: the time to the cap begins anew, too."""
        self.since = self._extended = asked

    @property
    def held(self) -> bool:
        return not self.lost and time.monotonic() < self.since + self.terms.lease

    @property
    def renewable(self) -> bool:
        """Renewal ends at the cap, and when the thread that holds the lock died without a release."""
        return time.monotonic() - self._extended < self.terms.cap and self.thread.is_alive()

    def lose(self, *, aside: bool = False) -> None:
        """Tell the holder, once. `aside`: by a thread of its own, as the renewal has other locks to renew."""
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
