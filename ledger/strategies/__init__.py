"""Every way to apply a posting: one strategy per file, and one for each lock of `locks.LOCKS`, with the same slug."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from pkgutil import resolve_name

from ledger.card import CARD
from ledger.lock_tables import LOCK_TABLES
from ledger.strategies.base import Settings, Strategy
from ledger.strategies.fenced import Fenced
from ledger.strategies.locked import Locked, locked
from ledger.strategies.no_lock import NoLock
from ledger.strategies.sql import SqlStrategy
from locks import ENTRY_POINTS as LOCK_ENTRY_POINTS
from locks import LOCKS
from locks import find as find_lock
from locks.fenced import FencedLock
from locks.zookeeper import ZooKeeperLock

__all__ = [
    "CARD",
    "CONTROL",
    "STRATEGIES",
    "Locked",
    "Settings",
    "SqlStrategy",
    "Strategy",
    "find",
    "known",
    "locked",
]

ENTRY_POINTS = "lost_update_lab.strategies"

#: The only list of the written strategies: a strategy is one file and one line here (docs/CONTRIBUTING.md).
WRITTEN = (
    "ledger.strategies.fenced_at_write:FencedAtWrite",
    "ledger.strategies.fenced:Fenced",
    "ledger.strategies.zookeeper_fenced:ZooKeeperFenced",
    "ledger.strategies.lock_inside_transaction:LockInsideTransaction",
    "ledger.strategies.lock_around_transaction:LockAroundTransaction",
    "ledger.strategies.save_all_fields:SaveAllFields",
    "ledger.strategies.select_for_update:SelectForUpdate",
    "ledger.strategies.select_for_update_late:SelectForUpdateLate",
    "ledger.strategies.select_for_update_function:SelectForUpdateFunction",
    "ledger.strategies.row_lock_nowait:RowLockNowait",
    "ledger.strategies.scheduler_row:SchedulerRow",
    "ledger.strategies.advisory_lock:AdvisoryLock",
    "ledger.strategies.advisory_lock_session:AdvisoryLockSession",
    "ledger.strategies.atomic_update:AtomicUpdate",
    "ledger.strategies.check_then_decrement:CheckThenDecrement",
    "ledger.strategies.segmented_balance:SegmentedBalance",
    "ledger.strategies.skip_locked:SkipLocked",
    "ledger.strategies.optimistic_version:OptimisticVersion",
    "ledger.strategies.optimistic_value:OptimisticValue",
    "ledger.strategies.repeatable_read:RepeatableRead",
    "ledger.strategies.repeatable_read_innodb:RepeatableReadInnodb",
    "ledger.strategies.repeatable_read_innodb_snapshot:RepeatableReadInnodbSnapshot",
    "ledger.strategies.serializable:Serializable",
    "ledger.strategies.redis_then_database:RedisThenDatabase",
    "ledger.strategies.redis_gate:RedisGate",
    "ledger.strategies.single_writer:SingleWriter",
    "ledger.strategies.redis_atomic:RedisAtomic",
    "ledger.strategies.redis_watch:RedisWatch",
)


def _made() -> Iterator[type[Strategy]]:
    """Yield the strategies that are made from locks."""
    yield from (locked(slug, lock) for slug, lock in LOCKS.items() if slug != Fenced.slug)
    # only the lock; `fenced` is the lock and the ledger's check
    yield locked("fenced-unchecked", FencedLock)
    yield from (locked(slug, lock) for slug, lock in LOCK_TABLES.items())
    yield locked(ZooKeeperLock.slug, ZooKeeperLock)


STRATEGIES: dict[str, type[Strategy]] = {
    strategy.slug: strategy for strategy in (NoLock, *_made(), *map(resolve_name, WRITTEN))
}

#: the unprotected strategy that controls every trial
CONTROL = NoLock.slug


def known() -> dict[str, type[Strategy]]:
    """Return STRATEGIES and what other packages add through entry points (strategies, and locks as strategies)."""
    return {**_installed(), **STRATEGIES}


@cache
def _installed() -> dict[str, type[Strategy]]:
    """Look up the entry points once per process: it takes 10 ms, and every posting asks for its strategy."""
    found = {point.name: locked(point.name, point.load()) for point in entry_points(group=LOCK_ENTRY_POINTS)}
    return found | {point.name: point.load() for point in entry_points(group=ENTRY_POINTS)}


def find(slug: str) -> type[Strategy]:
    """Return the strategy `slug`. A `module:callable` is a third-party lock around `no-lock`.

    Raises LookupError, which lists the known strategies.
    """
    strategies = known()
    if slug in strategies:
        return strategies[slug]
    if ":" in slug:
        return locked(slug, find_lock(slug))
    raise LookupError(f"no strategy {slug!r}. Known: {', '.join(strategies)}")
