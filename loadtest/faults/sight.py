"""What is seen of a lock: keys in Valkey, a session in PostgreSQL, nodes in ZooKeeper. The judge's own eyes."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from django.db import connection
from redis.exceptions import RedisError

if TYPE_CHECKING:
    from loadtest.faults.site import Site

SESSION = (
    "SELECT state, (SELECT count(*) FROM pg_locks l WHERE l.pid = a.pid AND l.granted"
    " AND l.mode IN ('RowShareLock', 'RowExclusiveLock', 'ExclusiveLock'))"
    " FROM pg_stat_activity a WHERE pid = %s"
)


def keys(site: Site, book: str, balances: bool = False) -> dict[str, str]:
    """Return the keys of the book's locks (and of its balances), with value and time to live, as the servers have
    them now."""
    found = {}
    for number, server in enumerate(site.valkeys()):
        with suppress(RedisError), server.client(socket_timeout=2) as client:
            for key in sorted(client.scan_iter(f"*{book}*", count=1000)):
                name = key.decode(errors="replace")
                if balances or not name.startswith("ledger:"):
                    where = f" on node {number}" if number else ""
                    found[name + where] = f"{_value(client, key)}, PTTL {client.pttl(key)} ms"
    return found


def held(site: Site, book: str, session: int | None) -> str:
    """Return what the worker with this SQL session is seen to hold, in a sentence."""
    told = [f"{name.replace(book, 'book')} = {what}" for name, what in keys(site, book).items()]
    told += [f"ZooKeeper node {node}" for node in site.nodes_in_zookeeper(book)]
    if session:
        with connection.cursor() as cursor:
            cursor.execute(SESSION, [session])
            row = cursor.fetchone()
        if row and row[0] != "idle":
            told.append(f"PostgreSQL session {session} is {row[0]}, {row[1]} locks")
    return "held: " + "; ".join(told[:4]) if told else "it holds nothing on a server"


def deadlocks(log: Any, begin: int, book: str) -> int:
    """Return how often PostgreSQL broke a deadlock of this book's sessions: they carry its id as their name, and the
    server's own counter would mix in what other cells do."""
    with log.open("rb") as file:
        file.seek(begin)
        return sum(b"deadlock detected" in line and book.encode() in line for line in file)


def _value(client: Any, key: bytes) -> str:
    kind = client.type(key).decode()
    if kind == "string":
        return (client.get(key) or b"").decode(errors="replace")[:40]
    if kind == "hash":
        return str({k.decode(): v.decode(errors="replace")[:40] for k, v in client.hgetall(key).items()})[:80]
    return f"a {kind}"
