"""The books of a whole book: sums over its accounts, the worst evidence, and torn postings.

A transfer is one posting with an entry on each of two accounts. If it is on one account's chain and not on the other's,
it is torn: money was created or destroyed, although each account may look right by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from ledger.reconcile.account import AccountBooks, evidence_json, reconcile
from ledger.reconcile.evidence import Loss
from ledger.reconcile.rows import AccountRow, ChainRow, ClientOperation
from ledger.reconcile.totals import Totals

SENTENCES = 10


class Leg(NamedTuple):
    """One account's share of a posting."""

    key: str
    account: str
    amount: int


#: a function from keys to all legs of their postings
FindLegs = Callable[[Collection[str]], Iterable[Leg]]


@dataclass(frozen=True)
class Torn:
    """A posting with some legs on their account's chain and some off it. `net` is the sum of those on the chain."""

    key: str
    applied: tuple[Leg, ...]
    missing: tuple[Leg, ...]

    @property
    def net(self) -> int:
        return sum(leg.amount for leg in self.applied)

    @property
    def sentence(self) -> str:
        there = ", ".join(f"{leg.account} ({leg.amount:+,})" for leg in self.applied)
        gone = ", ".join(f"{leg.account} ({leg.amount:+,})" for leg in self.missing)
        effect = f"{abs(self.net)} {'made from nothing' if self.net > 0 else 'destroyed'}"
        return f"posting {self.key} is on the chain of {there} but not on that of {gone}: {effect}."

    def as_json(self) -> dict[str, Any]:
        legs = {name: [leg._asdict() for leg in getattr(self, name)] for name in ("applied", "missing")}
        return {"key": self.key, **legs, "net": self.net, "sentence": self.sentence}


@dataclass(frozen=True, kw_only=True)
class Books(Totals):
    """The books of all accounts of one book."""

    accounts: tuple[AccountBooks, ...] = ()
    first_loss: Loss | None = None
    last_loss: Loss | None = None
    worst_loss: Loss | None = None
    clearest_loss: Loss | None = None
    created: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    torn: int = 0
    torn_amount: int = 0  # Σ |net| of the torn postings
    worst_torn: Torn | None = None

    @property
    def right(self) -> bool:
        """Are all accounts right, and is no posting torn?"""
        return super().right and not self.torn

    @property
    def state(self) -> str:
        """Return the gravest of: lost, created, wrong (they do not balance), nothing posted, nothing lost."""
        if self.lost_updates:
            return "lost"
        if self.created_updates:
            return "created"
        if not self.right:
            return "wrong"
        return "nothing lost" if self.entries else "nothing posted"

    @property
    def worst_account(self) -> AccountBooks | None:
        """Return the account that lost most, otherwise the one that created most. None if nothing went wrong."""
        worst = max(self.accounts, key=lambda each: (each.lost_amount, each.created_amount), default=None)
        return worst if worst and (worst.lost_updates or worst.created_updates) else None

    def as_json(self) -> dict[str, Any]:
        worst = self.worst_account
        return {
            **self.figures(),
            **evidence_json(self),
            "torn": self.torn,
            "torn_amount": self.torn_amount,
            "worst_torn": self.worst_torn.as_json() if self.worst_torn else None,
            "worst_account": worst.number if worst else None,
            "accounts": [each.as_json() for each in self.accounts],
        }


def reconcile_book(
    rows: Iterable[tuple[AccountRow, Iterable[ChainRow]]],
    operations: Mapping[str, Sequence[ClientOperation]] | None = None,
    find_legs: FindLegs | None = None,
    forgotten: Callable[[], Iterable[str]] = tuple,
    problems: Callable[[], Iterable[str]] = tuple,
) -> Books:
    """Reconcile each account of `rows`, one after the other, and add up.

    operations   the clients' operations, by account number. If there are any, they are complete
    find_legs    looks up the legs of postings, to find torn ones; by default in the operations. It is called only for
                 keys that are off some chain, so memory holds one account's entries and what went wrong
    forgotten    called after `rows`: the numbers of accounts that the store has forgotten. Accounts that only the
                 operations name are added
    problems     called after `rows`: what is wrong with the book itself
    """
    operations = operations or {}
    asked = frozenset(each.key for seen in operations.values() for each in seen)
    accounts = [
        reconcile(account, entries, operations.get(account.number, ()), asked) for account, entries in rows
    ]
    gone = {*operations, *forgotten()} - {each.number for each in accounts}
    accounts += [_forgotten(number, operations.get(number, ())) for number in gone]
    accounts.sort(key=lambda each: each.number)
    return _add_up(accounts, _torn(accounts, find_legs or legs_of(operations)), tuple(problems()))


def legs_of(operations: Mapping[str, Sequence[ClientOperation]]) -> FindLegs:
    """Return a function that finds the legs of postings in the clients' own operations."""

    def find(keys: Collection[str]) -> Iterable[Leg]:
        wanted = set(keys)
        for account, seen in operations.items():
            amounts = {each.key: each.amount for each in seen if each.key in wanted}
            yield from (Leg(key, account, amount) for key, amount in amounts.items())

    return find


def _forgotten(number: str, operations: Sequence[ClientOperation]) -> AccountBooks:
    """Return the books of an account that its store no longer knows: everything acknowledged is lost."""
    books = reconcile(AccountRow(number, 0, 0, 0, None), (), operations)
    sentence = f"account {number} is not in the store; its opening balance is unknown and taken as 0"
    values = {each.name: getattr(books, each.name) for each in fields(books)}
    return AccountBooks(
        **{**values, "problem_count": books.problem_count + 1, "problems": (sentence, *books.problems)}
    )


def _torn(accounts: Sequence[AccountBooks], find_legs: FindLegs) -> list[Torn]:
    missing = {each.number: each.missing for each in accounts if each.missing}
    keys = frozenset().union(*missing.values())
    legs: dict[str, list[Leg]] = defaultdict(list)
    for leg in find_legs(keys) if keys else ():
        legs[leg.key].append(leg)
    torn = []
    for key, shares in legs.items():
        gone = tuple(leg for leg in shares if key in missing.get(leg.account, ()))
        there = tuple(leg for leg in shares if key not in missing.get(leg.account, ()))
        if gone and there:
            torn.append(Torn(key, there, gone))
    return torn


def _add_up(accounts: Sequence[AccountBooks], torn: Sequence[Torn], problems: tuple[str, ...]) -> Books:
    sums = {each.name: sum(getattr(books, each.name) for books in accounts) for each in fields(Totals)}
    sums["problem_count"] += len(problems)
    problems += tuple(sentence for books in accounts for sentence in books.problems)
    firsts = [books.first_loss for books in accounts if books.first_loss]
    lasts = [books.last_loss for books in accounts if books.last_loss]
    worsts = [books.worst_loss for books in accounts if books.worst_loss]
    clearest = [books.clearest_loss for books in accounts if books.clearest_loss]
    return Books(
        **sums,
        accounts=tuple(accounts),
        first_loss=min(firsts, key=lambda loss: loss.at, default=None),
        last_loss=max(lasts, key=lambda loss: loss.at, default=None),
        worst_loss=max(worsts, key=lambda loss: abs(loss.amount), default=None),
        clearest_loss=min(clearest, key=lambda loss: loss.unclear, default=None),
        created=tuple(sentence for books in accounts for sentence in books.created)[:SENTENCES],
        problems=problems[:SENTENCES],
        torn=len(torn),
        torn_amount=sum(abs(each.net) for each in torn),
        worst_torn=max(torn, key=lambda each: abs(each.net), default=None),
    )
