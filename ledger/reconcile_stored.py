"""Reconcile a book: the pure `reconcile`, fed from the store that keeps the accounts.

An account and its entries are read in one snapshot. Otherwise an entry that is written between the two reads is not
on the chain of the head that was read before it, and it looks like a lost update.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ledger import metrics
from ledger.models import Book, Reconciliation
from ledger.posting import Line, Posting
from ledger.reconcile import AccountBooks, Books, ClientOperation, reconcile, reconcile_book
from ledger.reconcile.course import Course, PeriodEnd, course
from ledger.reconcile.losses import Losses
from ledger.stores import store_of


def books_of_account(book: Book, number: str) -> AccountBooks:
    """Return one account's books. Raises Refused if there is no such account."""
    store = store_of(book)
    with store.at_one_moment():
        pk = store.read(Posting("", (Line(number, 0),)))[number].pk
        return reconcile(store.account(pk), store.links(pk))


def books_of(
    book: Book, operations: Mapping[str, Sequence[ClientOperation]] | None = None, went: Course | None = None
) -> Books:
    """Return the books of all accounts; `operations`: what the clients saw, by account number. `went` notes the course
    of the book as its entries pass by.

    Streamed: memory holds one account's entries at a time.
    """
    store = store_of(book)
    with store.at_one_moment():
        told = store.spread(operations or {})
        accounts = went.passing(store.everything()) if went else store.everything()
        books = reconcile_book(accounts, told, store.legs, store.forgotten, store.problems)
    metrics.reconciled(book.strategy, books.lost_amount, right=books.right)
    Reconciliation.record(book, books)
    return books


def course_of(book: Book) -> list[PeriodEnd]:
    """Return how the book went so far, from its entries."""
    store = store_of(book)
    with store.at_one_moment():
        return course(store.everything())


def losses_of(book: Book, number: str) -> Losses:
    """Return all losses of one account. Raises Refused if there is no such account."""
    store = store_of(book)
    with store.at_one_moment():
        pk = store.read(Posting("", (Line(number, 0),)))[number].pk
        return Losses(store.account(pk), store.entries(pk))
