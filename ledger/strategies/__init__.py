"""Every way to apply a posting. One strategy a file; each lock of `locks.LOCKS` gives one of the same slug."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from ledger.card import CARD
from ledger.lock_tables import LOCK_TABLES
from ledger.strategies.advisory_lock import AdvisoryLock
from ledger.strategies.atomic_update import AtomicUpdate
from ledger.strategies.base import Settings, Strategy
from ledger.strategies.check_then_decrement import CheckThenDecrement
from ledger.strategies.fenced import Fenced
from ledger.strategies.fenced_at_write import FencedAtWrite
from ledger.strategies.lock_around_transaction import LockAroundTransaction
from ledger.strategies.lock_inside_transaction import LockInsideTransaction
from ledger.strategies.locked import Locked, locked
from ledger.strategies.no_lock import NoLock
from ledger.strategies.optimistic_value import OptimisticValue
from ledger.strategies.optimistic_version import OptimisticVersion
from ledger.strategies.redis_atomic import RedisAtomic
from ledger.strategies.redis_gate import RedisGate
from ledger.strategies.redis_then_database import RedisThenDatabase
from ledger.strategies.redis_watch import RedisWatch
from ledger.strategies.repeatable_read import RepeatableRead
from ledger.strategies.repeatable_read_innodb import RepeatableReadInnodb
from ledger.strategies.repeatable_read_innodb_snapshot import RepeatableReadInnodbSnapshot
from ledger.strategies.row_lock_nowait import RowLockNowait
from ledger.strategies.save_all_fields import SaveAllFields
from ledger.strategies.segmented_balance import SegmentedBalance
from ledger.strategies.select_for_update import SelectForUpdate
from ledger.strategies.select_for_update_function import SelectForUpdateFunction
from ledger.strategies.select_for_update_late import SelectForUpdateLate
from ledger.strategies.serializable import Serializable
from ledger.strategies.single_writer import SingleWriter
from ledger.strategies.skip_locked import SkipLocked
from ledger.strategies.sql import SqlStrategy
from ledger.strategies.zookeeper_fenced import ZooKeeperFenced
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

#: The only list.
_ALL: tuple[type[Strategy], ...] = (
    NoLock,
    *(locked(slug, lock) for slug, lock in LOCKS.items() if slug != Fenced.slug),
    locked("fenced-unchecked", FencedLock),  # the lock alone: `fenced` is the lock and the ledger's check
    *(locked(slug, lock) for slug, lock in LOCK_TABLES.items()),
    FencedAtWrite,
    Fenced,
    locked(ZooKeeperLock.slug, ZooKeeperLock),
    ZooKeeperFenced,
    LockInsideTransaction,
    LockAroundTransaction,
    SaveAllFields,
    SelectForUpdate,
    SelectForUpdateLate,
    SelectForUpdateFunction,
    RowLockNowait,
    AdvisoryLock,
    AtomicUpdate,
    CheckThenDecrement,
    SegmentedBalance,
    SkipLocked,
    OptimisticVersion,
    OptimisticValue,
    RepeatableRead,
    RepeatableReadInnodb,
    RepeatableReadInnodbSnapshot,
    Serializable,
    RedisThenDatabase,
    RedisGate,
    SingleWriter,
    RedisAtomic,
    RedisWatch,
)
STRATEGIES = {strategy.slug: strategy for strategy in _ALL}

#: the unprotected strategy that every trial is judged against
CONTROL = NoLock.slug


def known() -> dict[str, type[Strategy]]:
    """Return STRATEGIES and what other packages add by entry points (strategies, and locks as strategies)."""
    return {**_installed(), **STRATEGIES}


@cache
def _installed() -> dict[str, type[Strategy]]:
    """Entry points are looked up once a process: it costs 10 ms, and every posting asks for its strategy."""
    found = {point.name: locked(point.name, point.load()) for point in entry_points(group=LOCK_ENTRY_POINTS)}
    return found | {point.name: point.load() for point in entry_points(group=ENTRY_POINTS)}


def find(slug: str) -> type[Strategy]:
    """Return the strategy `slug`; a `module:callable` is a stranger's lock under the plain strategy.

    Raises LookupError that lists the known ones.
    """
    strategies = known()
    if slug in strategies:
        return strategies[slug]
    if ":" in slug:
        return locked(slug, find_lock(slug))
    raise LookupError(f"no strategy {slug!r}. Known: {', '.join(strategies)}")
