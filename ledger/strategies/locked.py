"""A lock's strategy: take the lock, then read, compute and write as `no-lock` does.

    A: lock("account:…") …………… SELECT → 100 …… UPDATE 110 …… unlock
    B:        (waits)                                              lock …… SELECT → 110 …

One class serves every lock in `locks.LOCKS` and every third-party `module:callable`. The strategy has the lock's
slug and the lock's claims. Nothing in the database checks that the lock still holds when the write arrives, so the
money is exactly as safe as the lock.
"""

from __future__ import annotations

import inspect
import logging
from typing import Any, ClassVar

from redis.exceptions import DataError, RedisError, ResponseError

from ledger.addresses import NoServers
from ledger.posting import Applied, Busy, Change, Posting, applied, compute
from ledger.resources import resources
from ledger.stores.redis import takes_no_writes
from ledger.strategies.base import OUR_OPTIONS, Settings, Strategy
from locks import Lock, LockFactory, LockTimeout, build
from locks.giving_up import gives_up
from locks.hazards import Hazard
from locks.timing import milliseconds, whole_seconds

log = logging.getLogger(__name__)


class Locked(Strategy):
    """`no-lock` under one lock for each account, taken in the order of the account numbers."""

    factory: ClassVar[LockFactory]
    stores: ClassVar[tuple[str, ...]] = ("postgres", "mariadb", "redis")

    @classmethod
    def check(cls, settings: Settings) -> None:
        """The lock must take the keywords of `extra`, and its commands must be able to express the lease."""
        taken = inspect.signature(cls.factory).parameters.values()
        if not any(each.kind is each.VAR_KEYWORD for each in taken):
            known = {each.name for each in taken} - OUR_OPTIONS - Settings.__dataclass_fields__.keys()
            if unknown := settings.extra.keys() - known:
                others = f"it takes {', '.join(sorted(known))}" if known else "it takes none"
                raise ValueError(f"extra: {cls.slug} has no {', '.join(sorted(unknown)[:5])}: {others}")
        step: float | None = getattr(cls.factory, "lease_step", None)
        if settings.lease is not None and step is not None:
            try:
                (whole_seconds if step == 1 else milliseconds)(settings.lease)
            except ValueError as error:
                raise ValueError(f"{cls.slug}: {error}") from error

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        taken: list[Any] = []
        around = self.store.open_blocks()
        try:
            for number in self.order(posting):  # one common order: no deadlock
                taken.append(self.enter(number))
            changes = self.inside(posting, taken)
        except BaseException as error:
            self.leave(taken, error, around)
            raise
        warning = self.leave(taken, None, around)
        return Applied(applied(changes).entries, warning=warning)

    def inside(self, posting: Posting, taken: list[Any]) -> list[Change]:
        """The section that the locks protect. `taken`: the locks, in the order of the account numbers."""
        changes = compute(posting, self.store.read(posting))
        self.think()
        self.store.write(changes)
        return changes

    def enter(self, number: str) -> Any:
        """Take one account's lock. Raises Busy if it was not granted; nothing has been written then."""
        try:
            with self.waiting():
                return self.take(number)
        except Exception as error:
            if _out_of_order(error) or gives_up(error, type(self).factory):
                raise Busy(f"{type(error).__name__}: {error}") from error
            raise

    def take(self, number: str) -> Any:
        """Take one account's lock. Whatever the lock raises passes through."""
        name = f"{self.book.pk}:{number}"
        lock = build(type(self).factory, name, **resources(self.book), **self.settings.lock_keywords())
        if not isinstance(lock, Lock) or self.settings.timeout is None:
            lock.__enter__()
        elif not lock.acquire(self.settings.timeout):
            raise LockTimeout(f"the lock of {number} was not granted in {self.settings.timeout:g} s")
        return lock

    def leave(self, taken: list[Any], error: BaseException | None, around: int) -> str:
        """Release the locks, last one first. Once the posting is committed, a failed release (the lease has ended, the
        server is gone) cannot undo it. The failure becomes a warning beside the correct answer.

        A lock may hold the transaction open until its own end (`with transaction.atomic(): INSERT …; yield; DELETE …`).
        Then a failed release has undone the posting, and it is raised. `around`: the blocks that were open before."""
        warning, undone = "", None
        for lock in reversed(taken):
            committed = self.store.open_blocks() <= around
            try:
                lock.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)
            except Exception as complaint:  # noqa: BLE001  (a third-party lock may raise anything)
                warning = f"{type(complaint).__name__}: {complaint}"
                log.info("release of a lock of %s: %s", self.book.pk, warning)
                if not (committed or error):
                    error = undone = complaint
        if undone:
            raise undone
        return warning


def _out_of_order(error: Exception) -> bool:
    """Is it the server that fails, and not a command that it does not understand?"""
    if isinstance(error, ResponseError):
        return takes_no_writes(error)
    return isinstance(error, (RedisError, NoServers)) and not isinstance(error, DataError)


def locked(slug: str, factory: LockFactory) -> type[Locked]:
    """Return the strategy of a lock: same slug, same claims."""
    return type(
        "Locked" + slug.title().replace("-", "").replace(":", "").replace(".", ""),
        (Locked,),
        {
            "slug": slug,
            "factory": staticmethod(factory),
            "__doc__": factory.__doc__,
            "__module__": getattr(factory, "__module__", __name__),  # the textbook page is the lock's
            "title": getattr(factory, "title", slug),
            "source": getattr(factory, "source", ""),
            "guarantees": getattr(factory, "guarantees", ""),
            "breaks_when": getattr(factory, "breaks_when", ""),
            "round_trips": getattr(factory, "round_trips", ""),
            # a third-party callable without claims is still presented as a lock, and a lock promises this much
            "withstands": getattr(factory, "withstands", frozenset({Hazard.CONTENTION})),
            "withstands_on_mariadb": getattr(factory, "withstands_on_mariadb", None),
        },
    )
