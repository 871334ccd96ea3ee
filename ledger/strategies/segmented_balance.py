"""segmented-balance: a hot account is 8 rows. A deposit goes to any of them, and the balance is their sum.

    A: UPDATE … SET balance = balance + 10 WHERE number = 'X/3'
    B: UPDATE … SET balance = balance + 20 WHERE number = 'X/6'        another row: nobody waits
    C: SELECT sum(balance) WHERE number LIKE 'X/%'

A thread starts at a row given by its posting's key, and keeps a row as long as it meets no other thread there
(own_row.py).

Guarantees   what `atomic-update` guarantees, for each row, so the sum is right. A floor holds: each row has its
             share of the money above the floor. A withdrawal that is too large for one row locks all rows, in
             their order, and takes from several.
Breaks when  a caller decides on the sum without locking all rows: two callers decide on the same sum, go to two
             rows, and neither waits for the other. Reading costs 8 rows. Withdrawals near the floor are slow,
             because they empty row after row.
             A constraint over account and key does not detect a request that was sent twice and went to two rows.
             The constraint of the entries is therefore over book and key.
Costs        1 round trip for a deposit, as `atomic-update`. Up to eight threads that keep posting soon stop waiting
             for each other.
Source       the sharded counter (Google App Engine, 2008); LongAdder (Java 8) for the choice of the row;
             PostgreSQL locks rows, not columns.

In the books, each row is an account of its own with its own chain: X/0 … X/7.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import ClassVar
from zlib import crc32

from django.db import connections, transaction

from ledger.models import Account
from ledger.posting import Line, Posting, Refused, Snapshot, Stored, applied, compute
from ledger.reconcile.rows import SEGMENT
from ledger.stores.prepared import Prepared
from ledger.stores.rows import snapshot
from ledger.stores.segments import row_of
from ledger.strategies.atomic_update import ADD_STATEMENT, THIS_ONE, TYPES, AtomicUpdate, increment
from ledger.strategies.own_row import OwnRows
from ledger.strategies.sql import DATABASE_HAZARDS, MARIADB_HAZARDS
from locks.hazards import Hazard

SEGMENTS = 8
ADD = Prepared(
    "ledger_add_to_row", ADD_STATEMENT.format(which=THIS_ONE, told=", (SELECT version FROM written)"), **TYPES
)
LONGEST = 38  # characters of an account number


class SegmentedBalance(AtomicUpdate):
    """`atomic-update` on one of the account's rows."""

    slug = "segmented-balance"
    title = "A hot account split into 8 rows"
    source = "ours, after the sharded counter"
    guarantees = "as atomic-update for each row, including the floor"
    breaks_when = "a caller decides on the sum without locking all rows"
    round_trips = "1; near the floor 20 in one transaction"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS
    withstands_on_mariadb = MARIADB_HAZARDS

    @classmethod
    def lay_out(cls, accounts: Iterable[Snapshot]) -> Iterator[Snapshot]:
        """Split each account: the money above its floor in equal shares, the rest in the first row."""
        for account in accounts:
            if len(account.number) > LONGEST:
                raise ValueError(f"{account.number}: up to {LONGEST} characters, each row adds two")
            floor = account.floor or 0
            if account.floor is not None and account.balance < floor:
                told = f"{account.number}: opens at {account.balance}, below its floor of {floor}"
                raise ValueError(f"{told}; what the other rows get could be taken out again")
            share = max(0, account.balance - floor) // SEGMENTS
            first = account.balance - share * (SEGMENTS - 1)
            for segment in range(SEGMENTS):
                yield replace(
                    account,
                    number=row_of(account.number, segment),
                    balance=share if segment else first,
                    floor=account.floor if account.floor is None or segment == 0 else 0,
                )

    def add(self, posting: Posting, line: Line, place: int = 0) -> tuple[Stored, ...]:
        try:
            with self.holding_nothing_in_vain() if line.amount < 0 else nullcontext():
                return (self.add_to_one(posting, line, place),)
        except Refused:
            OwnRows.leave(self.book.pk, line.account)
            if line.amount >= 0:
                self.store.read(
                    Posting("", (line,))
                )  # no such account: name the account, not one of its rows
                raise
            return self.gather(posting, line, place)

    def add_to_one(self, posting: Posting, line: Line, place: int) -> Stored:
        row = OwnRows.of(self.book.pk, line.account)
        if row is None:
            row = home(posting)
        its = Line(row_of(line.account, row), line.amount)
        stored, (version,) = increment(self.store, posting, its, place, ADD)
        OwnRows.wrote(self.book.pk, line.account, row, int(version))
        return stored

    def holding_nothing_in_vain(self) -> AbstractContextManager[None]:
        """Free the row that a withdrawal had to wait for and then found too little in.

        The withdrawal locks all rows in their order next, so it may not hold one of them. Inside a transaction, a
        savepoint frees the row. Outside, it is free already.
        """
        inside = connections[self.db].in_atomic_block
        return transaction.atomic(using=self.db) if inside else nullcontext()

    def gather(self, posting: Posting, line: Line, place: int) -> tuple[Stored, ...]:
        """Withdraw from several rows. Raises Refused if all of them together have too little."""
        with transaction.atomic(using=self.db):
            rows = Account.objects.using(self.db).select_for_update()
            rows = rows.filter(book_id=self.book.pk, number__startswith=line.account + SEGMENT)
            read = {each.number: snapshot(each) for each in rows.order_by("number")}
            if not read:
                raise Refused(f"no account {line.account} in this book")
            amounts, missing = dict[str, int](), -line.amount
            for number, before in read.items():
                taken = min(missing, before.balance - (before.floor or 0))
                if taken > 0:
                    amounts[number] = -taken
                    missing -= taken
            if missing:
                raise Refused(f"account {line.account}: {line.amount} would break its floor")
            lines = tuple(Line(number, amount) for number, amount in amounts.items())
            changes = compute(Posting(posting.key, lines, posting.description), read)
            self.store.put([replace(change, fingerprint=posting.fingerprint) for change in changes], place)
        return applied(changes).entries


def home(posting: Posting) -> int:
    """Return the first row of a thread that has none: derived from the posting's key, which is as good as random."""
    return crc32(posting.key.encode()) % SEGMENTS
