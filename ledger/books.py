"""Open a book and post to it. The API, the imports, the swarm and the admin all go through here."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import OperationalError, connections, transaction

from ledger import logs, metrics
from ledger.models import Book
from ledger.names import visible
from ledger.posting import Applied, Busy, NotConfigured, Posting, Refused, Snapshot
from ledger.stores import STORES, KeyTaken, store_of
from ledger.stores.prepared import Prepared
from ledger.stores.sql import ALIASES
from ledger.strategies import Settings, find, known
from ledger.strategies.sql import LOCKED, START_AGAIN, code_of

FIELDS = ("id", "name", "strategy", "store", "settings", "created")
BOOK = Prepared(
    "ledger_book",
    "SELECT name, strategy, store, settings, (extract(epoch FROM created) * 1000000)::bigint FROM ledger_book"
    " WHERE id = %(id)s",
    id="uuid",
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class KeyReused(Exception):
    """The idempotency key was used before, for another request."""


def open_book(
    strategy: str,
    accounts: Iterable[tuple[str, int, int | None]],
    *,
    store: str = "postgres",
    name: str = "",
    values: dict[str, Any] | None = None,
    trusted: bool = False,
) -> Book:
    """Open a book with `accounts` (number, opening balance, floor or None) under `strategy`.

    Invisible characters are left out of the name: with them one book could be made to look like another.
    A `module:callable` is imported only for a `trusted` caller (the command line) or if settings.EXTRA_LOCKS names it,
    never because of a request. Raises ValueError, which says what is wrong.
    """
    if not (trusted or strategy in known() or strategy in settings.EXTRA_LOCKS):
        raise ValueError(f"no strategy {strategy!r}. Known: {', '.join([*known(), *settings.EXTRA_LOCKS])}")
    try:
        found = find(strategy)
    except LookupError as error:
        raise ValueError(str(error)) from error
    if store not in STORES:
        raise ValueError(f"no store {store!r}. Known: {', '.join(STORES)}")
    if store not in found.stores:
        raise ValueError(f"{strategy} does not keep accounts on {store}, only on {', '.join(found.stores)}")
    found.check(Settings.of(values or {}))
    fields = {"name": visible(name), "strategy": strategy, "store": store, "settings": values or {}}
    try:
        store_of(Book(**fields))
    except NotConfigured as error:
        raise ValueError(str(error)) from error
    alias = ALIASES.get(store, "default")
    with transaction.atomic(), transaction.atomic(using=alias):
        book = Book.objects.create(**fields)
        if alias != "default":  # the accounts' foreign key needs it there too
            Book.objects.using(alias).create(id=book.pk, **fields)
        asked_for = (Snapshot(0, number, opening, 0, None, floor) for number, opening, floor in accounts)
        store_of(book).open(found.lay_out(asked_for))
    return book


def book_of(book_id: UUID) -> Book:
    """Return the book with this id. Raises Book.DoesNotExist.

    Same as `Book.objects.get`, which builds its query for each request and takes as long as a posting.
    """
    rows = BOOK.rows(connections["default"], {"id": book_id.hex})
    if not rows:
        raise Book.DoesNotExist
    *words, settings, created = rows[0]
    words = [word.decode() for word in words]
    opened = EPOCH + timedelta(microseconds=int(created))
    return Book.from_db("default", FIELDS, [book_id, *words, json.loads(settings), opened])


def post(book: Book, posting: Posting) -> Applied:
    """Apply `posting` with the book's strategy, once for each key.

    A key that was used before gets the first answer again (`replayed`). Raises KeyReused, Refused, Busy. After any
    other error it is unknown whether the posting was applied: ask again with the same key.
    """
    if not posting.lines:
        raise Refused("this posting has no line")
    if len(posting.lines) > len(set(posting.accounts)):
        raise Refused("an account comes twice in this posting")
    with logs.about(logs.POSTING, posting.key), metrics.posting(book.strategy) as counted:
        applied = _post(book, posting)
        counted(applied.retries, replayed=applied.replayed)
    return applied if len(posting.lines) == 1 else _as_asked(applied, posting)


def _as_asked(applied: Applied, posting: Posting) -> Applied:
    """Put the entries in the order of the posting's lines. Each strategy writes them in its own order, but a replay
    must equal the first answer."""
    place = {account: number for number, account in enumerate(posting.accounts)}
    entries = sorted(applied.entries, key=lambda entry: place.get(entry.account, len(place)))
    return replace(applied, entries=tuple(entries))


def _post(book: Book, posting: Posting) -> Applied:
    if first := _replay(book, posting):
        return first
    try:
        return _apply(book, posting)
    except (KeyTaken, Refused, Busy):
        # If the request was sent twice, its first copy may have been applied by now: it took the money that is
        # missing here, or the lock that this copy waited for.
        if first := _replay(book, posting):
            return first
        raise


def _apply(book: Book, posting: Posting) -> Applied:
    try:
        strategy = find(book.strategy)(book)
        strategy.waiting = partial(metrics.lock_wait, book.strategy)
        return strategy.apply(posting)
    except OperationalError as error:
        if code_of(error) not in START_AGAIN | LOCKED:
            raise
        # a deadlock victim, or too long a wait for a row: every strategy's transaction is rolled back as a whole
        raise Busy(f"rolled back: {error}") from error


def _replay(book: Book, posting: Posting) -> Applied | None:
    found = store_of(book).find(posting.key)
    if found is None:
        return None
    fingerprint, entries = found
    if not posting.fits(fingerprint):
        raise KeyReused(f"the key {posting.key!r} was used for another posting: take a new key")
    return Applied(entries, replayed=True)
