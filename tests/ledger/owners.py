"""An owner that the test conducts step by step, and its callers in threads of their own."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from ledger.books import open_book
from ledger.models import Book, BookOwner
from ledger.posting import Posting
from ledger.writer import Answer, Owner, ask

LONG = 60.0  # a lease that does not end by itself during a test


def opened() -> Book:
    return open_book("single-writer", [("A", 100, 0), ("B", 0, None)])


def candidates(book: Book) -> Iterator[tuple[Owner, Owner]]:
    """Two, conducted by the test."""
    both = Owner(book, LONG), Owner(book, LONG)
    yield both
    for each in both:
        each.let_go()


class Caller(threading.Thread):
    """A caller that asks and waits for the answers."""

    def __init__(self, book: Book, *postings: Posting) -> None:
        super().__init__()
        self.book, self.postings = book, postings
        self.answers: list[Answer] = []
        self.start()

    def run(self) -> None:
        self.answers = ask(self.book, self.postings, 20.0, LONG)

    def served_by(self, owner: Owner) -> list[Answer]:
        while self.is_alive():
            owner.serve(0.05)
        self.join()
        return self.answers


def heard(owner: Owner, orders: int = 1) -> None:
    """The owner has received so many orders, and has not begun with them."""
    assert owner.clients is not None
    while len(owner.clients.asked) < orders:
        owner.hear(5)


def begun(owner: Owner) -> None:
    assert owner.clients is not None
    owner.prepare()
    owner.begin()


def committed(owner: Owner) -> int:
    """The group is on the disk, and its callers have not been answered. Returns whether it was written: 1 or 0."""
    assert owner.selector is not None
    while (written := owner.statement.result()) is None:
        owner.selector.select(5)
    return written


def end_lease(book: Book) -> None:
    BookOwner.objects.filter(book=book).update(until="2000-01-01T00:00Z")
