"""A session that is no worker's: inside of a transaction, it keeps a lock on each table that it has read.

    invariant     SELECT balance …       opens a transaction, and does not end it
    the explorer  TRUNCATE the table     waits for that lock, and gives up after its `lock_timeout`

During a search that is told, with its remedy. When the explorer cleans up, such a session is ended: what is the
explorer's has to go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import psycopg
from psycopg.pq import DiagnosticField
from psycopg.pq.abc import PGresult

from lost_update_lab.model.errors import ENDS_ITS_TRANSACTION, Broken

T = TypeVar("T")
TABLE_IS_LOCKED = "a table cannot be read or restored: a session that is no worker's has locked it"
_LOCK_NOT_AVAILABLE = str(psycopg.errors.LockNotAvailable.sqlstate).encode()
_END = """
SELECT pg_terminate_backend(pid, 1000) FROM pg_stat_activity WHERE datname = current_database()
AND xact_start IS NOT NULL AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""


def keeps_a_lock() -> Broken:
    """The reason why a search ends, and its remedy."""
    return Broken(TABLE_IS_LOCKED, ENDS_ITS_TRANSACTION)


def is_locked_out(result: PGresult) -> bool:
    """Has a command of the explorer's given up waiting for a lock?"""
    return result.error_field(DiagnosticField.SQLSTATE) == _LOCK_NOT_AVAILABLE


def cleaned_up(clean_up: Callable[[], T], run: Callable[[str], object]) -> T:
    """What `clean_up` returns. If a lock is in its way, all other transactions in the database are ended (`run`
    executes the command), and it begins again."""
    try:
        return clean_up()
    except (Broken, psycopg.errors.LockNotAvailable):
        run(_END)
        return clean_up()
