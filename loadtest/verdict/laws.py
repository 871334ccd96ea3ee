"""The conservation laws of the workloads: what must hold, and the word for a breach.

| workload                                   | law                                                          |
|--------------------------------------------|--------------------------------------------------------------|
| deposits, imports                          | the books: each acknowledged operation once, no refused one  |
| stock                                      | the books, and no balance below its floor, at any entry      |
| transfers                                  | the books, no posting torn, and the total at each look       |
| read-mostly                                | the books, and no reader sees an account go back             |
| run-once                                   | each job ran exactly once                                    |

A new workload adds a function that returns breaches; `loadtest/verdict/judge.py` needs no change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ledger.reconcile import AccountBooks, Books, ClientOutcome
from ledger.reconcile.rows import account_of
from loadtest.history.calls import Call
from loadtest.verdict.words import Word


@dataclass(frozen=True)
class Breach:
    """One broken law: the word for it, and the proof in a sentence."""

    word: Word
    sentence: str

    def __post_init__(self) -> None:
        if not self.word.is_breach:
            raise ValueError(f"a breach cannot be called {self.word!r}")


def books_law(books: Books) -> list[Breach]:
    """No operation is on the chain twice, no refused one is on it, no acknowledged one is off it, no posting is
    torn."""
    breaches = []
    if books.created_updates:
        first = f", first: {books.created[0]}" if books.created else ""
        breaches.append(
            Breach(Word.CREATED, f"{books.created_amount:,} created by {_of(books.created_updates)}{first}")
        )
    if books.lost_updates:
        worst = f"; the worst: {books.worst_loss.sentence}" if books.worst_loss else ""
        among = f"{_of(books.lost_updates)} of {books.acknowledged_operations} that were acknowledged"
        breaches.append(Breach(Word.LOST, f"{books.lost_amount:,} lost with {among}{worst}"))
    if books.torn:
        worst = f"; the worst: {books.worst_torn.sentence}" if books.worst_torn else ""
        breaches.append(
            Breach(Word.LOST, f"{books.torn} torn postings, {books.torn_amount:,} out of balance{worst}")
        )
    return breaches


def floor_law(books: Books, floors: Mapping[str, int]) -> list[Breach]:
    """`floors`: account → the lowest allowed balance.

    It must hold in every entry, and also for the sum of what was acknowledged: 14 of 10 prizes can be promised while
    overwritten entries show a balance of 0. An account in several rows is their sum: each row has its share of the
    floor.
    """
    rows: dict[str, list[AccountBooks]] = {}
    for each in books.accounts:
        rows.setdefault(account_of(each.number), []).append(each)
    below = {}
    for number, parts in rows.items():
        floor = floors.get(number)
        lowest = min(sum(each.lowest for each in parts), sum(each.expected for each in parts))
        if floor is not None and lowest < floor:
            below[number] = (floor - lowest, lowest, floor)
    if not below:
        return []
    worst = max(below, key=lambda number: below[number])
    _, lowest, floor = below[worst]
    told = f"{len(below)} accounts" if len(below) > 1 else "1 account"
    return [
        Breach(
            Word.OVERSOLD,
            f"{told} oversold; the worst, {worst}, down to {lowest:,}, its floor being {floor:,}",
        )
    ]


def count_law(runs: Mapping[str, int], wanted: int = 1) -> list[Breach]:
    """`runs`: job → how many times it ran. More than `wanted` is created, less is lost. The worst of each is named."""
    breaches = []
    for word, sign in ((Word.CREATED, 1), (Word.LOST, -1)):
        off = {job: sign * (count - wanted) for job, count in runs.items() if sign * (count - wanted) > 0}
        if off:
            worst = max(off, key=lambda job: off[job])
            others = f", and {len(off) - 1} others as well" if len(off) > 1 else ""
            breaches.append(Breach(word, f"{worst} ran {runs[worst]} times, not {wanted}{others}"))
    return breaches


def conserved_law(calls: Sequence[Call], total: int) -> list[Breach]:
    """Every look saw `total`: money only moves, and at no moment does any appear or disappear."""
    looks = [call for call in calls if call.look is not None and call.outcome is ClientOutcome.OK]
    wrong = [call for call in looks if call.seen != total]
    if not wrong:
        return []
    first = f"first {wrong[0].seen:,}, seen by {wrong[0].worker}"
    return [
        Breach(Word.LOST, f"{len(wrong)} of {len(looks)} looks saw another total than {total:,}: {first}")
    ]


def forward_law(calls: Sequence[Call]) -> list[Breach]:
    """The version of an account never goes back in the eyes of one client. `calls` are in the order of their start. A
    client makes one call at a time, so its looks are ordered."""
    newest: dict[tuple[str, str], int] = {}
    back = []
    for call in calls:
        if call.look is None or call.seen is None:
            continue
        before = newest.get((call.worker, call.look), call.seen)
        if call.seen < before:
            back.append(f"{call.worker} saw version {before} and later {call.seen} at {call.look}")
        newest[call.worker, call.look] = max(before, call.seen)
    return [Breach(Word.LOST, f"{len(back)} looks saw an account go back, first: {back[0]}")] if back else []


def _of(count: int) -> str:
    return f"{count} operation" if count == 1 else f"{count} operations"
