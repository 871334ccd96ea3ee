"""The books of one account: what the clients were told, what the entries say, and what the balance is."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from ledger.reconcile.chain import follow
from ledger.reconcile.evidence import Loss
from ledger.reconcile.rows import AccountRow, ChainRow, ClientOperation
from ledger.reconcile.tally import Tally, strongest
from ledger.reconcile.totals import Totals


@dataclass(frozen=True, kw_only=True)
class AccountBooks(Totals):
    """The books of one account, with evidence."""

    number: str
    lowest: int = 0  # the lowest balance that it ever had, by all its entries
    first_loss: Loss | None = None
    last_loss: Loss | None = None
    worst_loss: Loss | None = None
    clearest_loss: Loss | None = None
    created: tuple[str, ...] = ()  # the first few, as sentences
    problems: tuple[str, ...] = ()  # the first few, as sentences
    #: keys of known operations that are not on this account's chain (for torn postings)
    missing: frozenset[str] = field(default=frozenset(), repr=False)

    def as_json(self) -> dict[str, Any]:
        return {"account": self.number, "lowest": self.lowest, **self.figures(), **evidence_json(self)}


def evidence_json(books: Any) -> dict[str, Any]:
    """Return the evidence that the books of an account and of a whole book have in common."""
    losses = {
        name: getattr(books, name) for name in ("first_loss", "last_loss", "worst_loss", "clearest_loss")
    }
    return {
        **{name: loss.as_json() if loss else None for name, loss in losses.items()},
        "created": list(books.created),
        "problems": list(books.problems),
    }


def reconcile(
    account: AccountRow,
    entries: Iterable[ChainRow],
    operations: Iterable[ClientOperation] = (),
    asked: Collection[str] = (),
) -> AccountBooks:
    """Return the books of `account`. Takes linear time, and memory for the entries of this one account.

    entries      all entries of the account, in any order
    operations   what the clients saw of this account
    asked        the keys of all their operations, on any account

    Without operations every entry counts as acknowledged: this is the store's own view. With operations, an entry on
    the chain that no operation names is indeterminate. If its operation names only other accounts, it is created.
    """
    chain = follow(account, entries)
    tally = Tally(chain)
    known = strongest(operations)
    if known or asked:
        tally.judge_operations(known, asked)
    else:
        tally.judge_entries()
    return AccountBooks(
        number=account.number,
        lowest=chain.lowest,
        opening=account.opening,
        final=account.balance,
        forks=len(chain.forks),
        entries=len(chain.rows),
        problem_count=chain.problems.count,
        problems=tuple(chain.problems.sentences),
        first_loss=tally.proof("first"),
        last_loss=tally.proof("last"),
        worst_loss=tally.proof("worst"),
        clearest_loss=tally.proof("clearest"),
        created=tuple(tally.created),
        missing=tally.missing,
        **tally.counts(),
    )
