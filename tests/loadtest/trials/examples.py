"""Evidence of small trials, for the tests of the judge."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ledger.reconcile import ClientOperation, ClientOutcome, reconcile_book
from loadtest.history.observed import Observed
from loadtest.verdict.evidence import Evidence
from loadtest.verdict.words import Word
from tests.ledger.history import History


def evidence_of(*histories: History, **more: Any) -> Evidence:
    """What a trial with these histories found; every second operation overlapped its neighbour."""
    operations = {
        history.number: [
            replace_times(each, tick / 2, tick / 2 + 0.75) for tick, each in enumerate(history.operations)
        ]
        for history in histories
    }
    books = reconcile_book(((each.account, each.entries) for each in histories), operations)
    return Evidence(books=books, observed=Observed.of(operations), **{"control": Word.LOST, **more})


def replace_times(operation: ClientOperation, started: float, ended: float) -> ClientOperation:
    return operation._replace(started=started, ended=ended)


def correct(number: str = "A1") -> History:
    history = History(number=number)
    for key in "abcd":
        history.write(key, 10, outcome=ClientOutcome.OK)
    return history


def lossy() -> History:
    history = correct()
    history.write("x", 7, "a", outcome=ClientOutcome.OK)
    return history


def kept(**more: Any) -> Evidence:
    """Evidence that deserves `kept`; `more` takes something of that away."""
    good = evidence_of(correct())
    return replace(good, **more)
