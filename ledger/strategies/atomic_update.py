"""atomic-update: let the database add. `UPDATE … SET balance = balance + 10` never writes a number from the past.

    A: UPDATE … SET balance = balance + 10 …      (100 → 110; the row is locked until the commit)
    B:                  UPDATE … SET balance = balance + 20 …      (waits, then 110 → 130)

Guarantees   no lost update: read, add and write are one statement on a locked row. The same transaction writes the
             entry, whose parent is the head that this very statement replaced.
Breaks when  the new balance is not a sum (tiered interest, a rule over several rows). The business logic must then
             read first, and this strategy cannot help. A limit must be part of the statement
             (`WHERE balance + amount >= floor`). If it is checked before the statement, two callers both pass.
Costs        1 round trip on PostgreSQL 18: UPDATE … RETURNING old and the INSERT of the entry are one statement.
             Elsewhere a transaction of 4 statements, with Django's `F("balance") + amount`. No strategy locks the
             row for a shorter time: no think time and no network round trip falls within the lock.
Source       Django, "F() expressions: avoiding race conditions"; PostgreSQL 18, RETURNING with old and new.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from django.db import DatabaseError, IntegrityError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Q

from ledger.models import Account
from ledger.models.ids import fresh
from ledger.posting import Applied, Change, Line, Posting, Refused, Stored, applied, worker
from ledger.stores.prepared import FetchedRow, Prepared
from ledger.stores.rows import key_taken, snapshot
from ledger.stores.sql import SqlStore
from ledger.strategies.sql import DATABASE_HAZARDS, MARIADB_HAZARDS, SqlStrategy, in_range
from locks.hazards import Hazard

ADD_STATEMENT = """
WITH written AS (
    UPDATE ledger_account
    SET balance = balance + %(amount)s, version = version + 1, head = %(entry)s
    WHERE {which} AND (%(amount)s >= 0 OR floor IS NULL OR balance + %(amount)s >= floor)
    RETURNING id, number, version, old.balance AS balance_before, new.balance AS balance_after, old.head AS parent
)
INSERT INTO ledger_entry (id, book_id, account_id, key, fingerprint, place, amount, balance_before,
                          balance_after, parent, worker, read_at, written_at)
SELECT %(entry)s, %(book)s, id, %(key)s, %(fingerprint)s, %(place)s, %(amount)s, balance_before,
       balance_after, parent, %(worker)s, clock_timestamp(), clock_timestamp()
FROM written
RETURNING balance_before{told}
"""
THIS_ONE = "book_id = %(book)s AND number = %(number)s"
TYPES = {
    "amount": "bigint",
    "entry": "uuid",
    "book": "uuid",
    "key": "varchar",
    "fingerprint": "varchar",
    "place": "int",
    "worker": "varchar",
    "number": "varchar",
}
ADD = Prepared("ledger_add", ADD_STATEMENT.format(which=THIS_ONE, told=""), **TYPES)


class AtomicUpdate(SqlStrategy):
    """Add in the database, and write the entry in the same statement (PostgreSQL 18) or transaction."""

    slug = "atomic-update"
    row_lock_excludes = True
    title = "UPDATE balance = balance + amount"
    source = "Django manual, F() expressions (F4)"
    guarantees = "no lost update: the database adds, on a locked row"
    breaks_when = "the new balance is not a sum; a limit is checked outside the statement"
    round_trips = "1 (PostgreSQL 18), or 6 in one transaction"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS
    withstands_on_mariadb = MARIADB_HAZARDS

    def apply(self, posting: Posting) -> Applied:
        self.prepare()
        self.think()  # before the statement: a decision made here cannot depend on the balance
        try:
            if len(posting.lines) == 1:
                return Applied(self.add(posting, posting.lines[0]))
            with transaction.atomic(using=self.db):  # one common order: no deadlock
                lines = sorted(posting.lines, key=lambda line: line.account)
                stored: tuple[Stored, ...] = ()
                for line in lines:
                    stored += self.add(posting, line, len(stored))
                return Applied(stored)
        except DatabaseError:
            with in_range(posting):
                raise

    def add(self, posting: Posting, line: Line, place: int = 0) -> tuple[Stored, ...]:
        """Add one line. `place`: the position of the line's first entry in the posting."""
        stored, _ = increment(self.store, posting, line, place)
        return (stored,)


def increment(
    store: SqlStore, posting: Posting, line: Line, place: int = 0, statement: Prepared = ADD
) -> tuple[Stored, FetchedRow]:
    """Add one line's amount to its account and record it. Raises Refused or KeyTaken without having written anything.

    The second value holds the other columns that `statement` returns, or the account's version where several
    statements are needed.
    """
    connection: Any = connections[store.db]  # only PostgreSQL has pg_version
    if connection.vendor != "postgresql" or connection.pg_version < 180000:
        return in_one_transaction(store, posting, line, place)
    found = in_one_statement(store, connection, posting, line, place, statement)
    if found is None:
        raise _refused(store, line)
    return found


def in_one_statement(
    store: SqlStore,
    connection: BaseDatabaseWrapper,
    posting: Posting,
    line: Line,
    place: int,
    statement: Prepared = ADD,
    **given: str,
) -> tuple[Stored, FetchedRow] | None:
    """Add to the row that `statement` selects, and record it. `given`: further parameters of the statement.

    Returns None if there is no such row or the floor would break. The second value holds the other columns that
    the statement returns.
    """
    entry = fresh()
    given |= {
        "entry": entry.hex,
        "book": store.book.pk.hex,
        "number": line.account,
        "amount": str(line.amount),
        "key": posting.key,
        "fingerprint": posting.fingerprint,
        "place": str(place),
        "worker": worker(),
    }
    try:
        rows = statement.rows(connection, given)
    except IntegrityError:  # not a `with` around every posting: it costs as much as the fingerprint
        with key_taken(posting.key):
            raise
    if not rows:
        return None
    before, *more = rows[0]
    return Stored(entry, line.account, line.amount, int(before), int(before) + line.amount), more


def in_one_transaction(
    store: SqlStore, posting: Posting, line: Line, place: int = 0, checked: bool = True
) -> tuple[Stored, FetchedRow]:
    """Do the same with F(), where UPDATE … RETURNING old is missing: the row lock makes the statements one unit.
    `checked`: make the floor a condition of the UPDATE."""
    rows = Account.objects.using(store.db).filter(book_id=store.book.pk, number=line.account)
    enough = Q(floor=None) | Q(balance__gte=F("floor") - line.amount)
    with transaction.atomic(using=store.db):
        chosen = rows.filter(enough) if checked and line.amount < 0 else rows
        if not chosen.update(balance=F("balance") + line.amount, version=F("version") + 1):
            raise _refused(store, line)
        after = snapshot(rows.get())  # still the previous head: this transaction has not written it yet
        before = replace(after, balance=after.balance - line.amount, version=after.version - 1)
        change = Change(before, line.amount, after.balance, posting.key, posting.fingerprint)
        rows.update(head=change.entry)
        store.record([change], place)
    return applied([change]).entries[0], [after.version]


def _refused(store: SqlStore, line: Line) -> Refused:
    read = store.read(Posting("", (line,)))[line.account]  # raises Refused itself if there is no such account
    return Refused(f"account {line.account}: {line.amount} would break its floor of {read.floor}")
