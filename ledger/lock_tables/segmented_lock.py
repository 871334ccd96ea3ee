"""segmented-lock: 100 central rows instead of one, chosen by the lock's name. Version 3 of E12.

    A (name 'A1', crc32 … 37):  SELECT 'center_lock_37' FOR UPDATE; …
    B (name 'B7', crc32 … 05):  SELECT 'center_lock_05' FOR UPDATE; …        nobody waits for the other

Guarantees   what `centre-lock` guarantees. Only one pair of names in a hundred meets at a central row.
Breaks when  as `centre-lock`: an overrun frees the successor's lock, a crash locks for a year, and two sessions hold
             the lock inside a caller's transaction. One hot name gains nothing.
Costs        as `centre-lock`, without waiting for everyone else.
Source       the lock-table article, version 3 (E12): rows center_lock_00 … 99, by the last two decimal digits of crc32.
"""

from __future__ import annotations

from zlib import crc32

from ledger.lock_tables.centre_lock import CentreLock

SEGMENTS = 100


class SegmentedLock(CentreLock):
    """`centre-lock` with one of 100 central rows."""

    slug = "segmented-lock"
    title = "Lock table behind 100 central rows"
    source = "E12: version 3; its release is ours"
    guarantees = "as centre-lock; different names seldom wait for each other"
    breaks_when = "as centre-lock"

    @property
    def centre(self) -> str:
        return f"center_lock_{crc32(self.name.encode()) % SEGMENTS:02d}"
