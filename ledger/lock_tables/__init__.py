"""Locks that are rows of a table, on PostgreSQL and MariaDB: the three versions of E7, E10 and E12, and their kin."""

from __future__ import annotations

from pkgutil import resolve_name

from ledger.lock_tables.base import TableLock

__all__ = ["LOCK_TABLES", "TableLock"]

#: The only list: a lock in a table is its own file, and one line here.
LOCK_TABLES: dict[str, type[TableLock]] = {
    lock.slug: lock
    for lock in map(
        resolve_name,
        (
            "ledger.lock_tables.insert_lock:InsertLock",
            "ledger.lock_tables.lock_table:LockTable",
            "ledger.lock_tables.centre_lock:CentreLock",
            "ledger.lock_tables.segmented_lock:SegmentedLock",
            "ledger.lock_tables.segmented_lock_mended:SegmentedLockMended",
        ),
    )
}
