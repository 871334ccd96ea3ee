"""psycopg's stream(): the rows of one look at the data, one by one. For the gates it is an execute(), and its rows.

psycopg sends the query, and does not wait for its reply. What another session does then comes before the server's look,
or after it, by chance. Where a worker leaves off before the last row, psycopg cancels the rest: nothing of it is seen.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
from psycopg.pq import ExecStatus

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.gates.patch import Patches
from lost_update_lab.gates.postgres.many import by_a_worker


def stream(cursor: Any, query: Any, params: Any = None, **keywords: Any) -> Iterator[Any]:
    if not by_a_worker(cursor):
        yield from driver.stream(cursor, query, params, **keywords)
        return
    psycopg.Cursor.execute(cursor, query, params, binary=keywords.get("binary"))
    if _has_rows(cursor):
        yield from psycopg.Cursor.fetchall(cursor)


async def stream_async(cursor: Any, query: Any, params: Any = None, **keywords: Any) -> AsyncIterator[Any]:
    if not by_a_worker(cursor):
        async for row in driver.stream_async(cursor, query, params, **keywords):
            yield row
        return
    await psycopg.AsyncCursor.execute(cursor, query, params, binary=keywords.get("binary"))
    for row in await psycopg.AsyncCursor.fetchall(cursor) if _has_rows(cursor) else ():
        yield row


def _has_rows(cursor: Any) -> bool:
    return bool(cursor.pgresult and cursor.pgresult.status == ExecStatus.TUPLES_OK)


def install(patches: Patches) -> None:
    patches.method(psycopg.Cursor, "stream", stream)
    patches.method(psycopg.AsyncCursor, "stream", stream_async)
