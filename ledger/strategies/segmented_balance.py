"""segmented-balance: a hot account is 8 rows, a deposit goes to any of them, the balance is their sum.

    A: UPDATE … SET balance = balance + 10 WHERE number = 'X/3'
    B: UPDATE … SET balance = balance + 20 WHERE number = 'X/6'        another row: nobody waits
    C: SELECT sum(balance) WHERE number LIKE 'X/%'

A thread begins at a row that its posting's key says, and stays at a row while it meets nobody there (own_row.py).

Guarantees   what `atomic-update` guarantees, for each row; so the sum is right. A floor holds: each row has its
             share of what is left above it, and a withdrawal that is too large for one row locks all rows, in
             their order, and takes from several.
Breaks when  somebody decides on the sum without locking all rows: two decide on the same sum, go to two rows, and
             neither waits for the other. Reading costs 8 rows. Withdrawals near the floor are slow: they empty row
             after row.
             A constraint over account and key does not see a request that was sent twice and went to two rows:
             the entries' is over the book and the key.
Costs        1 round trip for a deposit, as `atomic-update`; up to eight threads that go on posting soon wait for
             nobody.
Source       the sharded counter (Google App Engine, 2008); LongAdder (Java 8) for who goes where; PostgreSQL has a
             row's lock, not a column's.

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
from ledger.strategies.atomic_update import STATEMENT, THIS_ONE, TYPES, AtomicUpdate, increment
from ledger.strategies.own_row import OwnRows
from ledger.strategies.sql import DATABASE_HAZARDS
from locks.hazards import Hazard

SEGMENTS = 8
ADD = Prepared(
    "ledger_add_to_row", STATEMENT.format(which=THIS_ONE, told=", (SELECT version FROM written)"), **TYPES
)
LONGEST = 38  # characters of an account's number


class SegmentedBalance(AtomicUpdate):
    """`atomic-update` on one of the account's rows."""

    slug = "segmented-balance"
    title = "A hot account split into 8 rows"
    source = "ours, after the sharded counter"
    guarantees = "as atomic-update for each row, floor included"
    breaks_when = "somebody decides on the sum without locking all rows"
    round_trips = "1; near the floor 20 in one transaction"
    withstands: ClassVar[frozenset[Hazard]] = DATABASE_HAZARDS

    @classmethod
    def lay_out(cls, accounts: Iterable[Snapshot]) -> Iterator[Snapshot]:
        """Split each account: what is above its floor in equal shares, the rest in the first row."""
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
                )  # no such account: by its own name, not by that of a row
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
        """A withdrawal that waited for a row, and then found too little in it, has that row locked: all rows are to be
        locked in their order next. Inside of a transaction a savepoint frees it; without one it is free already."""
        inside = connections[self.db].in_atomic_block
        return transaction.atomic(using=self.db) if inside else nullcontext()

    def gather(self, posting: Posting, line: Line, place: int) -> tuple[Stored, ...]:
        """Withdraw from several rows. Raises Refused when all of them together have not enough."""
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
    """Return the row to which a thread that has none goes: by the posting's key, which is as good as chance."""
    return crc32(posting.key.encode()) % SEGMENTS
