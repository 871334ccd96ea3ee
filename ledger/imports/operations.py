"""What the imports asked of a book, one posting for each line, and the verdict on the book that follows from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from ledger.models import Book, ImportLine
from ledger.reconcile import Books, ClientOperation, ClientOutcome
from ledger.reconcile.course import Course
from ledger.reconcile_stored import books_of

State = ImportLine.State
_OUTCOMES = {
    State.POSTED: ClientOutcome.OK,
    State.REFUSED: ClientOutcome.FAIL,
    State.BUSY: ClientOutcome.FAIL,
    State.UNKNOWN: ClientOutcome.INFO,
    State.STOPPED: ClientOutcome.INFO,
    State.WAITING: ClientOutcome.INFO,  # a killed worker may have posted it without a report
}
_FIELDS = (
    "key",
    "account",
    "amount",
    "state",
    "started",
    "ended",
    "worker",
    "attempts",
    "problem",
    "batch__posting_key",
)


@dataclass(frozen=True, slots=True)
class ImportedPosting:
    """One posting of an import. `legs`: account → amount, several under all or nothing. Times are epoch seconds."""

    key: str
    legs: dict[str, int]
    state: str
    started: float
    ended: float
    worker: str
    attempts: int
    problem: str

    @property
    def outcome(self) -> ClientOutcome:
        return _OUTCOMES[State(self.state)]


def asked(book: Book) -> Iterator[ImportedPosting]:
    """Yield the postings that all imports into `book` have requested or will request."""
    lines = ImportLine.objects.filter(book=book, chunk__isnull=False, state__in=_OUTCOMES)
    together: dict[str, ImportedPosting] = {}
    for line in lines.values_list(*_FIELDS).iterator():
        key, account, amount, state, started, ended, worker, attempts, problem, file_key = line
        if file_key in together:
            legs = together[file_key].legs
            legs[account] = legs.get(account, 0) + amount
            continue
        times = started.timestamp() if started else 0.0, ended.timestamp() if ended else inf
        each = ImportedPosting(file_key or key, {account: amount}, state, *times, worker, attempts, problem)
        if file_key:
            together[file_key] = each
        else:
            yield each
    yield from together.values()


def operations(book: Book) -> dict[str, list[ClientOperation]]:
    """Return the imports' operations by account number, as reconcile needs them."""
    found: dict[str, list[ClientOperation]] = defaultdict(list)
    for each in asked(book):
        for account, amount in each.legs.items():
            found[account].append(
                ClientOperation(each.key, amount, each.outcome, each.started, each.ended, each.worker)
            )
    return dict(found)


def books_with_imports(book: Book, went: Course | None = None) -> Books:
    """Reconcile the book: compare the answers that the imports got with the entries. `went` notes its course.

    A book with other postings too (by the HTTP API) is judged by its entries alone, because the imports know nothing
    about those postings.
    """
    known = operations(book)
    books = books_of(book, known or None, went)
    return books_of(book, None, went) if known and books.unreported else books
