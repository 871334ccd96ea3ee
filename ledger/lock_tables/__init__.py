"""Locks that are rows of a table, on PostgreSQL and MariaDB: the three versions of E7, E10 and E12, and their kin."""

from ledger.lock_tables.base import TableLock
from ledger.lock_tables.centre_lock import CentreLock
from ledger.lock_tables.insert_lock import InsertLock
from ledger.lock_tables.lock_table import LockTable
from ledger.lock_tables.segmented_lock import SegmentedLock
from ledger.lock_tables.segmented_lock_mended import SegmentedLockMended

__all__ = ["LOCK_TABLES", "TableLock"]

#: The only list.
LOCK_TABLES: dict[str, type[TableLock]] = {
    lock.slug: lock for lock in (InsertLock, LockTable, CentreLock, SegmentedLock, SegmentedLockMended)
}
