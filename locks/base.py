"""The contract that this library's locks share. A lock of your own does not need it: any callable that takes
a name and returns a context manager is a lock.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from types import TracebackType
from typing import ClassVar, Self

from locks.errors import LockError, LockTimeout
from locks.hazards import Hazard
from locks.timing import checked_poll

_NAME = re.compile(r"[A-Za-z0-9_.:/@=+-]{1,200}")

# Reasons that several locks share in their `not_applicable`.
AS_PUBLISHED = {"typed-errors": "kept as published: its errors are those of the client library, or none"}
NO_LEASE = {"lease-expiry": "it has no lease", "renewal": "it has no lease"}
NO_EXTENSION = {"renewal": "published without a way to extend the lease"}
NO_RENEWER = {"renewal-of-anothers": "no thread renews it"}
NO_FENCING = {"fencing": "it has no fencing number"}


def without(reasons: dict[str, str], *cases: str) -> dict[str, str]:
    """Return another lock's `fails` without the `cases` that this lock passes."""
    return {case: why for case, why in reasons.items() if case not in cases}


def checked_name(name: str) -> str:
    """Return `name`, or raise ValueError: a lock's name becomes part of a server-side key."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no lock name: 1 to 200 of A-Z a-z 0-9 _ . : / @ = + -")
    return name


class _Poll:
    """Seconds between a waiter's attempts. Checked whenever a lock is created."""

    def __get__(self, lock: Lock | None, kind: type[Lock] | None = None) -> float:
        if lock is None or "poll" not in lock.__dict__:
            raise AttributeError("it does not poll")
        poll: float = lock.__dict__["poll"]
        return poll

    def __set__(self, lock: Lock, poll: float) -> None:
        lock.__dict__["poll"] = checked_poll(poll)


class Lock(ABC):
    """A named lock, taken with `with`. One object is one holder, and can be reused after its release."""

    slug: ClassVar[str]
    title: ClassVar[str]
    #: who published it (article, book, library)
    source: ClassVar[str] = ""
    #: one sentence each, for docs/reference.md
    guarantees: ClassVar[str] = ""
    breaks_when: ClassVar[str] = ""
    round_trips: ClassVar[str] = ""
    #: smallest step of its `lease` in seconds (1.0 where the original uses EX or EXPIRE); None: no lease
    lease_step: ClassVar[float | None] = None
    #: does a background thread renew the lease while the lock is held?
    renews: ClassVar[bool] = False
    #: "process" or "machine" if the lock excludes callers only within one; else empty
    within: ClassVar[str] = ""
    #: does an acquire wait until the server has written the lock to disk?
    waits_for_disk: ClassVar[bool] = False
    #: hazards under which a ledger that has only this lock keeps its balance: a claim, which the lab measures
    withstands: ClassVar[frozenset[Hazard]] = frozenset()
    #: contract cases (tests/contract) that this lock must fail, each with the reason that its page gives
    fails: ClassVar[dict[str, str]] = {}
    #: contract cases that do not apply to this lock, each with the reason
    not_applicable: ClassVar[dict[str, str]] = {}

    token: bytes | None = None
    fencing_token: int | None = None
    poll = _Poll()

    def __init__(self, name: str) -> None:
        self.name = checked_name(name)

    @abstractmethod
    def acquire(self, timeout: float | None = None) -> bool:
        """Take the lock. Wait at most `timeout` seconds (None: as long as it takes). False: not taken."""

    @abstractmethod
    def release(self) -> None:
        """Give the lock back."""

    def extend(self) -> None:
        """Restart the lease. Raises NotImplementedError if there is no lease, or no way to extend it."""
        lacks = "lease to extend" if self.lease_step is None else "way to extend its lease"
        raise NotImplementedError(f"{self.slug} has no {lacks}")

    @property
    @abstractmethod
    def held(self) -> bool:
        """Whether this object believes that it holds the lock. Does not ask a server."""

    def __enter__(self) -> Self:
        if not self.acquire():
            raise LockTimeout(f"{self.name}: not granted in time")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.release()
        except LockError as lost:
            if error is None:
                raise
            error.add_note(f"and its lock: {lost}")  # the error from inside the section comes first
