"""What the imports saw of a book: one operation for each line that was asked for, as reconcile wants it."""

from __future__ import annotations

from collections import defaultdict

from ledger.models import Book, ImportLine
from ledger.reconcile import Books, Operation, Outcome
from ledger.reconciliation import books_of

_OUTCOMES = {
    ImportLine.State.POSTED: Outcome.OK,
    ImportLine.State.REFUSED: Outcome.FAIL,
    ImportLine.State.BUSY: Outcome.FAIL,
    ImportLine.State.UNKNOWN: Outcome.INFO,
    ImportLine.State.WAITING: Outcome.INFO,  # a killed worker may have posted it without saying so
}


def operations(book: Book) -> dict[str, list[Operation]]:
    """Return the operations of all imports into `book`, by account number."""
    lines = ImportLine.objects.filter(book=book, chunk__isnull=False, state__in=_OUTCOMES)
    found: dict[str, list[Operation]] = defaultdict(list)
    together: dict[tuple[str, str], Operation] = {}  # all or nothing: (key of the file, account) → one leg
    fields = ("key", "amount", "state", "started", "ended", "worker", "account", "batch__posting_key")
    for key, amount, state, started, ended, worker, account, file_key in lines.values_list(
        *fields
    ).iterator():
        operation = Operation(
            file_key or key,
            amount,
            _OUTCOMES[state],
            started.timestamp() if started else 0.0,
            ended.timestamp() if ended else float("inf"),
            worker,
        )
        if file_key:
            before = together.get((file_key, account))
            total = amount + (before.amount if before else 0)
            together[file_key, account] = operation._replace(amount=total)
        else:
            found[account].append(operation)
    for (_, account), operation in together.items():
        found[account].append(operation)
    return dict(found)


def books_with_imports(book: Book) -> Books:
    """Return the book's books: what the imports were told against what the entries say.

    A book that others post to as well (the HTTP API) is judged by its entries alone: of those postings the
    imports know nothing.
    """
    known = operations(book)
    books = books_of(book, known) if known else books_of(book)
    return books_of(book) if known and books.unreported else books
