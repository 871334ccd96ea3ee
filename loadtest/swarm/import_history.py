"""What an import's workers saw, in the form in which the swarm's clients record their calls."""

from __future__ import annotations

from ledger.imports.operations import asked
from ledger.models import Book, ImportLine
from loadtest.history.calls import Call, CallHistory


def history_of(book: Book) -> CallHistory:
    """Return the history of a book that imports filled, in the order in which the calls began."""
    calls = [
        Call(
            each.key,
            tuple(each.legs.items()),
            each.outcome,
            each.started,
            each.ended,
            each.worker,
            answered=each.state not in ImportLine.UNANSWERED,
            retries=max(0, each.attempts - 1),
            busy=each.state == "busy",
            error=each.problem,
        )
        for each in asked(book)
    ]
    return CallHistory(sorted(calls, key=lambda call: call.started))
