"""Doubts from the workers' journals: a cell decides nothing if the judge or the machine was late, or no other worker
got an answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ledger.reconcile import ClientOutcome
from loadtest.faults.workers.desk import Overdue, Starved
from loadtest.history.calls import Call
from loadtest.verdict.evidence import Doubt


def overdue(calls: Iterable[Call]) -> list[Doubt]:
    """Return a doubt for each worker that left without a write because the judge released it too late, or because the
    machine gave its renewal no time."""
    told = {
        Overdue: "the lab kept {0.worker} inside for as long as its lease ({0.error})",
        Starved: "the machine gave {0.worker} too little time to renew its lease ({0.error})",
    }
    return [
        Doubt(sentence.format(each), "run it again on a quieter machine")
        for each in calls
        for kind, sentence in told.items()
        if each.error.startswith(kind.__name__)
    ]


def unserved(calls: Iterable[Call], before: Collection[str], inside: Collection[str]) -> list[Doubt]:
    """Return a doubt if only the workers that had been `inside` got a yes or a no since the hazard (that is, apart from
    the keys `before`). The crowd's earlier answers show nothing about the hazard."""
    others = (each for each in calls if each.key not in before and each.worker not in inside)
    if any(each.outcome is not ClientOutcome.INFO for each in others):
        return []
    return [Doubt("no worker except the one inside got an answer since the hazard", "run it again")]
