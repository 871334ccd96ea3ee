"""A group of requests: computed in memory by the owner, committed by one statement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection
from django.utils import timezone

from ledger.models import Account, Book
from ledger.posting import BIGINT
from ledger.prepared import prepared
from ledger.writer.queue import Answer, Order, Request

# The owner's row is locked by the renewal of its lease: nobody else can become the owner before this commits, and
# with an old fencing number nothing is written at all.
# When an account is not there any more, no entry gets an account, and the whole statement fails.
COMMIT = """
WITH owner AS (
    UPDATE ledger_bookowner SET until = clock_timestamp() + make_interval(secs => %(lease)s)
    WHERE book_id = %(book)s AND fence = %(fence)s RETURNING book_id
), account AS (
    UPDATE ledger_account SET balance = a.balance, version = a.version, head = a.head
    FROM owner, unnest(%(pks)s::bigint[], %(balances)s::bigint[], %(versions)s::bigint[], %(heads)s::uuid[])
         AS a (pk, balance, version, head)
    WHERE id = a.pk RETURNING id
), entry AS (
    INSERT INTO ledger_entry (id, book_id, account_id, key, fingerprint, amount, balance_before, balance_after,
                              parent, worker, read_at, written_at)
    SELECT e.id, owner.book_id, CASE WHEN (SELECT count(*) FROM account) = %(accounts)s THEN e.account END,
           e.key, e.fingerprint, e.amount, e.after - e.amount, e.after, e.parent, e.worker,
           %(read_at)s, clock_timestamp()
    FROM owner, unnest(%(id)s::uuid[], %(account)s::bigint[], %(key)s::text[], %(fingerprint)s::text[],
                       %(amount)s::bigint[], %(after)s::bigint[], %(parent)s::uuid[], %(worker)s::text[])
         WITH ORDINALITY AS e (id, account, key, fingerprint, amount, after, parent, worker, n)
    ORDER BY e.n
)
SELECT count(*) FROM owner
"""
COLUMNS = ("id", "account", "key", "fingerprint", "amount", "after", "parent", "worker")
TEXTS = {"key", "fingerprint", "worker"}


@dataclass(slots=True)
class State:
    """An account as the owner has it in memory."""

    pk: int
    balance: int
    version: int
    head: str | None
    floor: int | None


@dataclass(slots=True)
class Group:
    """What a group will write, and what its callers will hear."""

    answers: list[list[Answer]] = field(default_factory=list)
    entries: list[tuple[Any, ...]] = field(default_factory=list)
    touched: dict[str, State] = field(default_factory=dict)


class Books:
    """A book's accounts in its owner's memory. Nobody else writes them while the fencing number is the newest."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.accounts: dict[str, State] = {}

    def forget(self) -> None:
        """Read everything anew: somebody else may have written, or a group did not go through."""
        self.accounts.clear()

    def compute(self, orders: Sequence[Order], taken: Iterable[str] = ()) -> Group:
        """Apply the requests of `orders` one after the other, each as a whole or not at all, in memory."""
        self._load(
            {account for order in orders for request in order.requests for account, _, _ in request.lines}
        )
        group, seen = Group(), set(taken)
        for order in orders:
            group.answers.append(
                [self._answer(request, order.worker, seen, group) for request in order.requests]
            )
        return group

    def _answer(self, request: Request, worker: str, seen: set[str], group: Group) -> Answer:
        if request.key in seen:
            return Answer("taken")
        if refused := self._refused(request):
            return Answer("refused", refused)
        seen.add(request.key)
        return Answer("stored", self._apply(request, worker, group))

    def commit(self, group: Group, fence: int, lease: float) -> bool:
        """Write the group. False: there is a newer owner, and nothing was written.

        Raises IntegrityError when a key was there before; nothing was written then either.
        """
        columns = zip(*group.entries, strict=True) if group.entries else ((),) * len(COLUMNS)
        states = group.touched.values()
        given = {
            **{n: (quoted if n in TEXTS else plain)(c) for n, c in zip(COLUMNS, columns, strict=True)},
            "book": self.book.pk,
            "fence": fence,
            "lease": lease,
            "read_at": timezone.now(),
            "accounts": len(states),
            "pks": plain(state.pk for state in states),
            "balances": plain(state.balance for state in states),
            "versions": plain(state.version for state in states),
            "heads": plain(state.head for state in states),
        }
        cursor = prepared(connection)
        cursor.execute(COMMIT, given)
        return bool(cursor.fetchone()[0])

    def _load(self, numbers: set[str]) -> None:
        if unknown := numbers - self.accounts.keys():
            columns = ("number", "pk", "balance", "version", "head", "floor")
            rows = Account.objects.filter(book=self.book, number__in=unknown).values_list(*columns)
            for number, pk, balance, version, head, floor in rows:
                self.accounts[number] = State(pk, balance, version, head.hex if head else None, floor)

    def _refused(self, request: Request) -> str:
        for account, amount, _ in request.lines:
            state = self.accounts.get(account)
            if state is None:
                return f"no account {account} in this book"
            after = state.balance + amount
            if amount < 0 and state.floor is not None and after < state.floor:
                return f"account {account} has {state.balance}: {amount} would break {state.floor}"
            if abs(after) > BIGINT:
                return f"account {account}: {state.balance} {amount:+d} leaves the range of BIGINT"
        return ""

    def _apply(self, request: Request, worker: str, group: Group) -> list[tuple[str, str, int, int, int]]:
        stored = []
        for account, amount, entry in request.lines:
            state = self.accounts[account]
            before, state.balance = state.balance, state.balance + amount
            group.entries.append(
                (
                    entry,
                    state.pk,
                    request.key,
                    request.fingerprint,
                    amount,
                    state.balance,
                    state.head,
                    worker,
                )
            )
            state.version += 1
            state.head = entry
            group.touched[account] = state
            stored.append((entry, account, amount, before, state.balance))
        return stored


def plain(values: Iterable[int | str | None]) -> str:
    """Return numbers or ids as a PostgreSQL array. psycopg would look at each value by itself: a third of the
    owner's time."""
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def quoted(values: Iterable[str]) -> str:
    """Return any texts as a PostgreSQL array."""
    escaped = [value.replace("\\", "\\\\").replace('"', '\\"') for value in values]
    return '{"' + '","'.join(escaped) + '"}' if escaped else "{}"
