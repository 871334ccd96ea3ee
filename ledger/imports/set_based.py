"""Set-based posting: many lines by COPY and one statement, still one entry a line with its parent and its balances.

    COPY lines → staging; SELECT accounts FOR UPDATE; INSERT … SELECT running sums, and UPDATE; COMMIT

Guarantees   what `select-for-update` guarantees, for a whole chunk: the accounts are locked, in the order of their
             numbers, before their balances are read. A chunk is applied as a whole or not at all. Each line has an
             entry of its own: its parent is the entry of the account's line before it.
Breaks when  never for the money. One line that would break a floor, names an unknown account or brings a known key
             with another request refuses its chunk. The accounts stay locked until the chunk commits: take short
             chunks beside other writers.
Costs        6 round trips and 1 commit a chunk, whatever it holds.
Source       PostgreSQL, "Populating a Database" (COPY) and "Window Functions".
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import uuid4

from django.db import DataError, connection, transaction

from ledger.books import KeyReused
from ledger.models import Account, Book
from ledger.posting import Refused, worker
from ledger.stores.sql import key_taken

STAGING = """
CREATE TEMPORARY TABLE IF NOT EXISTS staged_line
    (n integer, account bigint, quoted text, amount bigint, key text) ON COMMIT DELETE ROWS
"""
COPY = "COPY staged_line FROM STDIN (FORMAT BINARY)"
TYPES = ("int4", "int8", "text", "int8", "text")
#: Posting.fingerprint of a posting of one line
FINGERPRINT = "encode(sha256(convert_to('[[' || quoted || ', ' || s.amount || '], \"\"]', 'UTF8')), 'hex')"
ANY_KNOWN = "SELECT EXISTS (SELECT FROM ledger_entry WHERE book_id = %s AND key BETWEEN %s AND %s)"
TAKE_KNOWN_OFF = f"""
WITH known AS (
    DELETE FROM staged_line s USING ledger_entry e WHERE e.book_id = %(book)s AND e.key = s.key
    RETURNING s.n, s.key, e.account_id = s.account AND e.fingerprint = {FINGERPRINT} AS same
)
SELECT count(DISTINCT n), min(key) FILTER (WHERE NOT same) FROM known
"""  # noqa: S608  (our own names)
BELOW = """
SELECT n FROM (
    SELECT n, s.amount, a.floor, a.balance + sum(s.amount) OVER (PARTITION BY s.account ORDER BY n) AS after
    FROM staged_line s JOIN ledger_account a ON a.id = s.account
) AS running WHERE amount < 0 AND after < floor ORDER BY n LIMIT 1
"""
# An id is 12 random bytes of the chunk and the line's place: neighbours in the primary key's index, and no random
# number drawn for each. `sum` and `lag` share one sort, and `seq` is drawn in its order. sum() of a bigint is a
# numeric: the cast back says "out of range" instead of wrapping around.
APPLY = f"""
WITH drawn AS MATERIALIZED (
    SELECT s.*, (%(chunk)s || lpad(to_hex(n), 8, '0'))::uuid AS id FROM staged_line s
), written AS (
    INSERT INTO ledger_entry (id, book_id, account_id, key, fingerprint, amount, balance_before, balance_after,
                              parent, worker, read_at, written_at)
    SELECT s.id, %(book)s, s.account, s.key, {FINGERPRINT}, s.amount,
           a.balance + sum(s.amount) OVER line - s.amount, a.balance + sum(s.amount) OVER line,
           coalesce(lag(s.id) OVER line, a.head), %(worker)s, %(read_at)s, clock_timestamp()
    FROM drawn s JOIN ledger_account a ON a.id = s.account
    WINDOW line AS (PARTITION BY s.account ORDER BY s.n ROWS UNBOUNDED PRECEDING)
    ORDER BY s.account, s.n
    RETURNING account_id, id, seq, balance_after
), newest AS (
    SELECT DISTINCT ON (account_id) account_id, id, balance_after, count(*) OVER (PARTITION BY account_id) AS lines
    FROM written ORDER BY account_id, seq DESC
)
UPDATE ledger_account a SET balance = balance_after, head = newest.id, version = version + lines
FROM newest WHERE a.id = account_id
"""  # noqa: S608


class BulkLine(NamedTuple):
    """One request: its idempotency key, an account's number, an amount in minor units."""

    key: str
    account: str
    amount: int


class Posted(NamedTuple):
    """How many lines became entries, and how many had come before."""

    posted: int
    known: int


def post_lines(book: Book, lines: Sequence[BulkLine]) -> Posted:
    """Apply a chunk of `lines`, in their order, in one transaction.

    The book's accounts must be rows of their own on PostgreSQL, under a strategy that the row's lock excludes.
    Raises Refused, KeyReused and KeyTaken (a key twice in the chunk): nothing is applied then.
    """
    if not lines:
        return Posted(0, 0)
    with transaction.atomic(), connection.cursor() as cursor:
        accounts = _locked(book, {line.account for line in lines})
        cursor.execute("SELECT clock_timestamp()")
        given: dict[str, Any] = {"book": book.pk, "worker": worker(), "read_at": cursor.fetchone()[0]}
        _stage(cursor, accounts, lines)
        known = _take_known_off(cursor, given, lines)
        if any(floor is not None for _, floor, _ in accounts.values()):
            _refuse_below(cursor, lines)
        try:
            with key_taken("of a line"):
                cursor.execute(APPLY, given | {"chunk": uuid4().hex[:24]})
        except DataError as error:
            raise Refused("a balance would leave the range of BIGINT") from error
    return Posted(len(lines) - known, known)


def _locked(book: Book, numbers: set[str]) -> dict[str, tuple[int, int | None, str]]:
    """Lock the accounts; return primary key, floor and the number in JSON of each."""
    rows = Account.objects.select_for_update().filter(book=book, number__in=numbers).order_by("number")
    found = {
        number: (pk, floor, json.dumps(number))
        for number, pk, floor in rows.values_list("number", "pk", "floor")
    }
    if unknown := numbers - found.keys():
        raise Refused(f"no account {min(unknown)} in this book")
    return found


def _stage(cursor: Any, accounts: dict[str, tuple[int, int | None, str]], lines: Sequence[BulkLine]) -> None:
    cursor.execute(STAGING)
    with cursor.copy(COPY) as copy:
        copy.set_types(TYPES)
        for n, (key, number, amount) in enumerate(lines):
            pk, _, quoted = accounts[number]
            copy.write_row((n, pk, quoted, amount, key))


def _take_known_off(cursor: Any, given: dict[str, Any], lines: Sequence[BulkLine]) -> int:
    """Unstage the lines whose key came before. A fresh range of keys costs one look at the index."""
    keys = [line.key for line in lines]
    cursor.execute(ANY_KNOWN, (given["book"], min(keys), max(keys)))
    if not cursor.fetchone()[0]:
        return 0
    cursor.execute(TAKE_KNOWN_OFF, given)
    known, reused = cursor.fetchone()
    if reused is not None:
        raise KeyReused(f"the key {reused!r} was used for another posting: take a new key")
    return int(known)


def _refuse_below(cursor: Any, lines: Sequence[BulkLine]) -> None:
    cursor.execute(BELOW)
    if row := cursor.fetchone():
        line = lines[row[0]]
        raise Refused(f"{line.key}: {line.amount} would break the floor of account {line.account}")
