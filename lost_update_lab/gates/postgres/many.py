"""psycopg's executemany(): each of its commands is a step of its own, as for the server.

psycopg sends them in one go, in its pipeline mode, and hears the replies at the end. The server executes one after the
other, and what other sessions do may come between two of them. Where no transaction is open, all together are one: the
server ends it where psycopg ends its pipeline.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.gates.patch import Patches
from lost_update_lab.runs.place import here


def executemany(cursor: Any, query: Any, params_seq: Iterable[Any], *, returning: bool = False) -> None:
    if not by_a_worker(cursor):
        driver.executemany(cursor, query, params_seq, returning=returning)
        return
    results: list[Any] = []
    with _together(cursor):
        for params in params_seq:
            cursor.execute(query, params)
            results += driver.results_of(cursor)
    driver.give_results(cursor, results, returning)


async def executemany_async(
    cursor: Any, query: Any, params_seq: Iterable[Any], *, returning: bool = False
) -> None:
    if not by_a_worker(cursor):
        await driver.executemany_async(cursor, query, params_seq, returning=returning)
        return
    results: list[Any] = []
    async with _together(cursor):
        for params in params_seq:
            await cursor.execute(query, params)
            results += driver.results_of(cursor)
    driver.give_results(cursor, results, returning)


def by_a_worker(cursor: Any) -> bool:
    """Does a worker send it? In a pipeline of its own it is refused, as everything there."""
    return here() is not None and not driver.in_pipeline(cursor.connection)


def _together(cursor: Any) -> Any:
    link = cursor.connection
    alone = link.autocommit and link.pgconn.transaction_status == TransactionStatus.IDLE
    return link.transaction() if alone else nullcontext()


def install(patches: Patches) -> None:
    patches.method(psycopg.Cursor, "executemany", executemany)
    patches.method(psycopg.AsyncCursor, "executemany", executemany_async)
