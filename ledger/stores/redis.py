"""The Redis store: an account is a hash, its entries are a list, and one script writes both.

    ledger:{book}:accounts        set of the account numbers
    ledger:{book}:account:N       hash: opening, balance, version, head, floor
    ledger:{book}:entries:N       list of the entries as JSON, in the order of writing
    ledger:{book}:key:K           the result of the idempotency key K: fingerprint and entries, as JSON

The braces keep a book in one slot of a cluster. No key expires. No strategy can protect what this store loses:
without persistence a restart forgets the accounts, with `appendfsync everysec` it forgets up to a second of
acknowledged postings, and a failover forgets what the replica had not received.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.utils import timezone
from redis.exceptions import ExecAbortError, OutOfMemoryError, ReadOnlyError, ResponseError

from ledger.addresses import NoServers
from ledger.models import Book
from ledger.posting import Busy, Change, NotConfigured, Posting, Refused, Snapshot, Stored
from ledger.reconcile import AccountRow, EntryRow, Leg
from ledger.resources import redis_client
from ledger.stores.base import KeyTaken, Store
from ledger.stores.redis_entries import as_json, parsed, row
from locks.server import LuaScript

FIELDS = ("balance", "version", "head", "floor")
CHUNK = 5000
WRITE = LuaScript("redis_write.lua", package=__package__)
#: errors by which a server refuses writes, or everything for a while, for which redis-py has no class
TAKES_NO_WRITES = ("MISCONF", "NOREPLICAS", "BUSY ")


def takes_no_writes(error: ResponseError) -> bool:
    """Does the server refuse writes: is it full, read-only, busy, can it not save, or has it too few replicas?"""
    told = str(error).rpartition("caused error: ")[2]  # a pipeline's prefix
    known = isinstance(error, OutOfMemoryError | ReadOnlyError | ExecAbortError)
    return known or told.startswith(TAKES_NO_WRITES)


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """Raise Busy if the server refuses writes.

    For these reasons a server refuses only the first write of a script or a whole transaction, so nothing is written.
    """
    try:
        yield
    except ResponseError as error:
        if not takes_no_writes(error):
            raise
        told = str(error).rpartition("caused error: ")[2]
        raise Busy(f"the server takes no writes now: {told}") from error


class RedisStore(Store):
    """Balances and entries in Redis, without a database. Only the book itself is a row on `default`."""

    slug = "redis"

    def __init__(self, book: Book) -> None:
        super().__init__(book)
        try:
            self.redis = redis_client()
        except NoServers as error:
            raise NotConfigured(book.store) from error
        self._lengths: dict[str, int] = {}
        self._forgotten: list[str] = []
        self._problems: tuple[str, ...] = ()

    def name(self, kind: str, of: str = "") -> str:
        """Return the name of one of the book's keys."""
        return f"ledger:{{{self.book.pk}}}:{kind}" + (f":{of}" if of else "")

    def keys(self, posting_key: str, numbers: Iterable[str]) -> list[str]:
        """Return KEYS in the order that the scripts expect."""
        pairs = ((self.name("account", number), self.name("entries", number)) for number in numbers)
        return [self.name("key", posting_key), *(name for pair in pairs for name in pair)]

    def open(self, accounts: Iterable[Snapshot]) -> None:
        with self.redis.pipeline() as pipe:
            for a in accounts:
                fields: dict[Any, Any] = {"opening": a.balance, "balance": a.balance, "version": 0}
                if a.floor is not None:
                    fields["floor"] = a.floor
                pipe.hset(self.name("account", a.number), mapping=fields)
                pipe.sadd(self.name("accounts"), a.number)
            pipe.execute()

    def read(self, posting: Posting) -> dict[str, Snapshot]:
        return self.read_by(self.redis, posting)

    def read_by(self, redis: Any, posting: Posting) -> dict[str, Snapshot]:
        """Read through another client, or through a watching pipeline."""
        return {
            number: self._snapshot(number, redis.hmget(self.name("account", number), FIELDS))
            for number in posting.accounts
        }

    def _snapshot(self, number: str, values: list[bytes | None]) -> Snapshot:
        balance, version, head, floor = values
        if balance is None:
            raise Refused(f"no account {number} in this book")
        return Snapshot(
            number,
            number,
            int(balance),
            int(version or 0),
            UUID(head.decode()) if head else None,
            int(floor) if floor is not None else None,
            timezone.now(),
        )

    def write(self, changes: Sequence[Change]) -> None:
        key = changes[0].key
        arguments: list[Any] = [changes[0].fingerprint]
        for change in changes:
            arguments += [change.after, change.before.version + 1, str(change.entry), as_json(change)]
        with all_or_nothing():
            written = WRITE(self.redis, self.keys(key, (c.before.number for c in changes)), arguments)
        if written == 0:
            raise KeyTaken(key)
        if written < 0:
            raise Refused("no such account in this book any more: the server has forgotten it")

    def find(self, key: str) -> tuple[str, tuple[Stored, ...]] | None:
        record: Any = self.redis.get(self.name("key", key))
        return parsed(record) if record else None

    def accounts(self) -> Iterator[tuple[AccountRow, int | str]]:
        """Yield all accounts as they were at one moment, without half a transfer."""
        names: Any = self.redis.smembers(self.name("accounts"))
        numbers = sorted(name.decode() for name in names)
        rows = self._rows(numbers)
        self._forgotten = sorted(set(numbers) - rows.keys())
        self._problems = (
            () if numbers else ("the store has no account of this book: it has forgotten them all",)
        )
        yield from ((row, number) for number, row in rows.items())

    def forgotten(self) -> Iterable[str]:
        return self._forgotten

    def problems(self) -> Iterable[str]:
        return self._problems

    def account(self, pk: int | str) -> AccountRow:
        number = str(pk)
        if read := self._rows([number]).get(number):
            return read
        raise Refused(f"no account {number} in this book")

    def _rows(self, numbers: Sequence[str]) -> dict[str, AccountRow]:
        """Read the existing accounts in one MULTI, and remember how many entries each had at that moment."""
        with self.redis.pipeline() as pipe:
            for number in numbers:
                pipe.hmget(self.name("account", number), "opening", *FIELDS)
                pipe.llen(self.name("entries", number))
            answers = pipe.execute()
        rows = {}
        for number, (opening, *values), length in zip(numbers, answers[::2], answers[1::2], strict=True):
            if opening is None:
                continue
            self._lengths[number] = length
            read = self._snapshot(number, values)
            rows[number] = AccountRow(number, int(opening), read.balance, read.version, read.head, read.floor)
        return rows

    def legs(self, keys: Collection[str]) -> Iterable[Leg]:
        for key in keys:
            _, entries = self.find(key) or ("", ())
            yield from (Leg(key, stored.account, stored.amount) for stored in entries)

    def entries(self, pk: int | str) -> Iterator[EntryRow]:
        """Yield the entries that existed when `account` was read, so that both belong to one moment."""
        number = str(pk)
        length = self._lengths.get(number)
        if length is None:
            length = self.redis.llen(self.name("entries", number))
        for start in range(0, length, CHUNK):
            chunk = self.redis.lrange(self.name("entries", number), start, min(start + CHUNK, length) - 1)
            for seq, line in enumerate(chunk, start + 1):
                yield row(json.loads(line), seq)
