"""Contents that were read from a store once. A schedule's answers can be reconciled with them without a server."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from ledger.models import Book
from ledger.reconcile import AccountRow, Books, ClientOperation, EntryRow, Leg, reconcile_book
from ledger.reconcile.rows import SEGMENT
from ledger.stores import store_of
from ledger.stores.segments import spread


@dataclass(frozen=True, slots=True)
class Remembered:
    """Everything that `books_of` reads from a store: the accounts with their entries, and problems of the whole
    book."""

    accounts: Sequence[tuple[AccountRow, Sequence[EntryRow]]]
    forgotten: Sequence[str]
    problems: Sequence[str]

    @classmethod
    def of(cls, book: Book) -> Self:
        """Read the store as it is now."""
        store = store_of(book)
        with store.at_one_moment():
            accounts = [(row, [each.whole() for each in links]) for row, links in store.everything()]
            return cls(accounts, list(store.forgotten()), list(store.problems()))

    def books(self, operations: Mapping[str, Sequence[ClientOperation]]) -> Books:
        """Return what `books_of` would return. `operations`: what the clients saw."""
        if any(SEGMENT in row.number for row, _ in self.accounts):
            operations = spread(operations, [(leg.key, leg.account, leg.amount) for leg in self._legs()])
        return reconcile_book(
            iter(self.accounts), operations, self._legs, lambda: self.forgotten, lambda: self.problems
        )

    def _legs(self, keys: Collection[str] | None = None) -> Iterable[Leg]:
        """Return the legs of these postings, or of all, in the order of writing."""
        entries = [(row.number, each) for row, its in self.accounts for each in its]
        entries.sort(key=lambda found: found[1].written_at)
        return [Leg(e.key, number, e.amount) for number, e in entries if keys is None or e.key in keys]
