"""Set-based posting: many lines as one stream of entries, each with its parent and its balances.

One of the two ways to import a file (ways.py). The other one is line by line, with the book's strategy (apply.py).
A bulk loader calls this module directly, or side_by_side.py, which uses several sessions at once.

    SELECT accounts FOR UPDATE; are keys known?; draw numbers
    COPY entries (balances run along here); UPDATE accounts; COMMIT

Guarantees   what `select-for-update` guarantees, for a whole chunk: the accounts are locked, in the order of their
             numbers, before their balances are read. A chunk is applied as a whole or not at all. Each line has its
             own entry, whose parent is the entry of the account's previous line.
Breaks when  no money is at risk. A chunk is refused if one line would break a floor, names an unknown account, or
             reuses a known key for another request. The accounts stay locked until the chunk commits: use short
             chunks if there are other writers.
Costs        7 round trips and 1 commit for a chunk of any size. Client and server work at the same time, and the
             server's part is the larger one (docs/decisions/0013-imports-by-copy.md).
Source       PostgreSQL, "Populating a Database" (COPY).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from ledger.books import KeyReused
from ledger.imports.dealing import BulkLine
from ledger.imports.stream import COPY, Running, stream
from ledger.models import Account, Book
from ledger.models.sequence import blocks
from ledger.posting import Line, Posting, Refused
from ledger.stores import KeyTaken
from ledger.stores.rows import key_taken

__all__ = ["Posted", "post_lines"]

#: keys are ordered by their bytes (migration 0015), as in Python
ANY_KNOWN = "SELECT EXISTS (SELECT FROM ledger_entry WHERE book_id = %s AND key BETWEEN %s AND %s)"
KNOWN = "SELECT key, fingerprint FROM ledger_entry WHERE book_id = %s AND key = ANY(%s)"
UPDATE = """
UPDATE ledger_account SET balance = a.balance, head = a.head, version = version + a.lines
FROM unnest(%s::bigint[], %s::bigint[], %s::uuid[], %s::bigint[]) AS a (id, balance, head, lines)
WHERE ledger_account.id = a.id
"""


class Posted(NamedTuple):
    """How many lines became entries, and how many were posted before."""

    posted: int
    known: int


def post_lines(book: Book, lines: Sequence[BulkLine]) -> Posted:
    """Apply a chunk of `lines`, in their order, in one transaction.

    Each account of the book must be one row on PostgreSQL, under a strategy that the row's lock keeps out. Raises
    Refused, KeyReused or KeyTaken (a key twice in the chunk) without having applied anything.
    """
    if len({line.key for line in lines}) < len(lines):
        raise KeyTaken("a key comes twice in the chunk")
    return post_distinct(book, lines)


def post_distinct(
    book: Book, lines: Sequence[BulkLine], before_commit: Callable[[], None] = lambda: None
) -> Posted:
    """`post_lines` for distinct keys. The server detects a duplicate too, but takes longer. An error from
    `before_commit` rolls the chunk back."""
    if not lines:
        return Posted(0, 0)
    with transaction.atomic(), connection.cursor() as cursor:
        accounts = locked(book, {line.account for line in lines})
        fresh = _without_known(cursor, book, lines)
        numbers = blocks(cursor, len(fresh))
        with key_taken("of a line"), connection.wrap_database_errors, cursor.copy(COPY) as copy:
            for rows in stream(book, accounts, fresh, numbers):
                copy.write(rows)
        if fresh:
            write_accounts(cursor, accounts.values())
        before_commit()
    return Posted(len(fresh), len(lines) - len(fresh))


def locked(book: Book, numbers: set[str]) -> dict[str, Running]:
    """Lock the accounts and read them, by number."""
    rows = Account.objects.select_for_update().filter(book=book, number__in=numbers).order_by("number")
    found = {
        number: Running(pk, number, floor, balance, head.bytes if head else None)
        for number, pk, floor, balance, head in rows.values_list("number", "pk", "floor", "balance", "head")
    }
    if unknown := numbers - found.keys():
        raise Refused(f"no account {min(unknown)} in this book")
    return found


def write_accounts(cursor: Any, accounts: Iterable[Running]) -> None:
    """Write the final balances and heads of the locked `accounts` that had lines."""
    moved = [(each.pk, each.balance, UUID(bytes=each.head), each.lines) for each in accounts if each.lines]
    cursor.execute(UPDATE, [list(column) for column in zip(*moved, strict=True)])


def _without_known(cursor: Any, book: Book, lines: Sequence[BulkLine]) -> Sequence[BulkLine]:
    """Leave out the lines whose keys are known. If the whole range of keys is new, this takes one index lookup."""
    keys = [line.key for line in lines]
    cursor.execute(ANY_KNOWN, (book.pk, min(keys), max(keys)))
    if not cursor.fetchone()[0]:
        return lines
    cursor.execute(KNOWN, (book.pk, keys))
    known = dict(cursor.fetchall())
    for key, account, amount in lines:
        if key in known and not Posting(key, (Line(account, amount),)).fits(known[key]):
            raise KeyReused(f"the key {key!r} was used for another posting: take a new key")
    return [line for line in lines if line.key not in known]
