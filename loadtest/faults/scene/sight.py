"""What the judge itself sees of a lock: keys in Valkey, nodes in ZooKeeper, rows of lock tables, a file that the kernel
has locked, a session in PostgreSQL.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from django.db import connection
from django.utils import timezone
from redis.exceptions import RedisError

from ledger.models import LockRecord
from locks.file_lock import FileLock

if TYPE_CHECKING:
    from redis import Redis

    from loadtest.faults.scene.site import Site
    from loadtest.servers import Valkey

#: one client for each server, as long as the server lives, because connecting costs more than a query. Threads share
#: it. It reconnects to a server that was restarted
CLIENTS: WeakKeyDictionary[Valkey, Redis] = WeakKeyDictionary()
ACCOUNTS = ("A0001", "A0002")
SESSION = (
    "SELECT state, (SELECT count(*) FROM pg_locks l WHERE l.pid = a.pid AND l.granted"
    " AND l.mode IN ('RowShareLock', 'RowExclusiveLock', 'ExclusiveLock'))"
    " FROM pg_stat_activity a WHERE pid = %s"
)


def keys(site: Site, book: str, balances: bool = False) -> dict[str, str]:
    """Return the keys of the book's locks (with `balances`, also of its balances), with value and time to live, as the
    servers have them now."""
    found = {}
    for number, server in enumerate(site.valkeys()):
        with suppress(RedisError):
            client = _client(server)
            for key in sorted(client.scan_iter(f"*{book}*", count=1000)):
                name = key.decode(errors="replace")
                if balances or not name.startswith("ledger:"):
                    where = f" on node {number}" if number else ""
                    found[name + where] = f"{_value(client, key)}, PTTL {client.pttl(key)} ms"
    return found


def held(site: Site, book: str, session: int | None) -> str:
    """Return in a sentence what the worker with this SQL session visibly holds."""
    told = [f"{name.replace(book, 'book')} = {what}" for name, what in keys(site, book).items()]
    told += [f"ZooKeeper node {node}" for node in site.nodes_in_zookeeper(book)]
    told += [f"{what.replace(book, 'book')}" for what in (*rows(book), *files(book))]
    if session:
        with connection.cursor() as cursor:
            cursor.execute(SESSION, [session])
            row = cursor.fetchone()
        if row and row[0] != "idle":
            told.append(f"PostgreSQL session {session} is {row[0]}, {row[1]} locks")
    return "held: " + "; ".join(told[:4]) if told else "it holds no lock that can be seen"


def leases(site: Site, book: str) -> list[float]:
    """Return the seconds that are left of each of the book's leases, as the servers report them."""
    left = [int(what.rpartition("PTTL ")[2].split()[0]) / 1000 for what in keys(site, book).values()]
    found = LockRecord.objects.filter(name__contains=book, status=LockRecord.Status.LOCKED)
    ends = found.exclude(deadline=None).values_list("deadline", flat=True)
    return [
        each for each in [*left, *((end - timezone.now()).total_seconds() for end in ends if end)] if each > 0
    ]


def ends(site: Site, book: str) -> dict[str, float]:
    """Return key and value → when the lease ends, by the monotonic clock. The same pair, ending later, was renewed."""
    now = time.monotonic()
    parts = ((name, what.rpartition(", PTTL ")) for name, what in keys(site, book).items())
    return {f"{name} = {value}": now + int(left.split()[0]) / 1000 for name, (value, _, left) in parts}


def rows(book: str) -> list[str]:
    """Return the rows of lock tables that mark the book's accounts as locked."""
    found = LockRecord.objects.filter(name__contains=book, status=LockRecord.Status.LOCKED)
    return [f"row {each.name}" for each in found.order_by("name")]


def files(book: str) -> list[str]:
    """Return the book's lock files that a process has locked, as the kernel lists them. Checking with flock would
    exclude others meanwhile."""
    with suppress(OSError):  # not on this system
        locked = set(re.findall(r"FLOCK .*:(\d+) \d+ EOF", Path("/proc/locks").read_text()))
        names = [f"{book}:{number}" for number in ACCOUNTS]
        return [f"file of {each}" for each in names if _inode(FileLock(each).path) in locked]
    return []


def deadlocks(log: Any, begin: int, book: str) -> int:
    """Return how many deadlocks of this book's sessions PostgreSQL broke. The sessions are named after the book. The
    server's own counter would include those of other cells."""
    with log.open("rb") as file:
        file.seek(begin)
        return sum(b"deadlock detected" in line and book.encode() in line for line in file)


def _inode(path: Path) -> str:
    return str(path.stat().st_ino) if path.exists() else ""


def _client(server: Valkey) -> Redis:
    if server not in CLIENTS:
        CLIENTS[server] = server.client(socket_timeout=2)
    return CLIENTS[server]


def _value(client: Any, key: bytes) -> str:
    kind = client.type(key).decode()
    if kind == "string":
        return (client.get(key) or b"").decode(errors="replace")[:40]
    if kind == "hash":
        return str({k.decode(): v.decode(errors="replace")[:40] for k, v in client.hgetall(key).items()})[:80]
    return f"a {kind}"
