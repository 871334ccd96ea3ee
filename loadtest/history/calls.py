"""The clients' calls: read from their journals (loadtest/history/journal.py), merged, and counted.

An operation that began but never completed is `info`: its client did not live to see the answer, and the operation may
be applied at any time until the end of the history.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledger.reconcile import ClientOperation, ClientOutcome
from loadtest.history.journal import SUFFIX
from loadtest.history.observed import ClientAnswers

#: outcome → its name among the answers
NAMES = {ClientOutcome.OK: "acknowledged", ClientOutcome.FAIL: "declined", ClientOutcome.INFO: "unknown"}

ERRORS_KEPT = 10  # distinct ones


@dataclass(frozen=True, slots=True)
class Call:
    """One whole operation of one client: every leg of its posting, and its outcome. Or a look: what was read
    (`look`), and the number that was `seen`. A look has no legs."""

    key: str
    legs: tuple[tuple[str, int], ...]
    outcome: ClientOutcome
    started: float
    ended: float
    worker: str
    answered: bool = True
    retries: int = 0
    busy: bool = False
    error: str = ""
    look: str | None = None
    seen: int | None = None


@dataclass(slots=True)
class CallHistory:
    """All calls of a trial."""

    calls: list[Call] = field(default_factory=list)

    @property
    def postings(self) -> list[Call]:
        """The calls that change something."""
        return [call for call in self.calls if call.look is None]

    def operations(self) -> dict[str, list[ClientOperation]]:
        """Return the input of reconcile: each account's share of each call."""
        found: dict[str, list[ClientOperation]] = defaultdict(list)
        for call in self.calls:
            for account, amount in call.legs:
                found[account].append(
                    ClientOperation(call.key, amount, call.outcome, call.started, call.ended, call.worker)
                )
        return dict(found)

    def counts(self) -> dict[str, int]:
        """Return the number of postings with each outcome, of postings refused as busy, of looks, and of unanswered
        calls."""
        seen = Counter(call.outcome.value for call in self.postings)
        return {
            **{outcome.value: seen[outcome.value] for outcome in ClientOutcome},
            "unanswered": sum(not call.answered for call in self.calls),
            "busy": sum(call.busy for call in self.postings),
            "looks": len(self.calls) - len(self.postings),
        }

    def answers(self, before: Collection[str] = (), *, busy_is_an_answer: bool = False) -> ClientAnswers:
        """Return the answers that clients got, except for the keys `before`."""
        told: Counter[str] = Counter()
        for call in self.postings:
            if call.answered and call.key not in before:
                turned_away = call.busy and not busy_is_an_answer
                told["refused" if turned_away else NAMES[call.outcome]] += 1
        return ClientAnswers(**told)

    def errors(self) -> dict[str, int]:
        """Return error → how often clients saw it, most frequent first."""
        seen = Counter(call.error for call in self.calls if call.error)
        return dict(seen.most_common(ERRORS_KEPT))

    def elapsed(self) -> float:
        """Return the seconds from the start of the first answered call to the end of the last, or 0.0 without
        answers. A line of an import that no worker began has no start."""
        answered = [(call.started, call.ended) for call in self.calls if call.answered]
        return max(end for _, end in answered) - min(start for start, _ in answered) if answered else 0.0

    def rates(self) -> dict[str, Any]:
        """Return `ops_per_s` and `latency_ms` of the acknowledged calls, and all `retries`."""
        acknowledged = [call for call in self.calls if call.outcome is ClientOutcome.OK]
        elapsed = self.elapsed()
        return {
            "ops_per_s": round(len(acknowledged) / elapsed, 1) if elapsed else 0.0,
            "latency_ms": percentiles([1000 * (call.ended - call.started) for call in acknowledged]),
            "retries": sum(call.retries for call in self.calls),
        }


def percentiles(values: list[float]) -> dict[str, float | None]:
    """Return p50, p95, p99 (nearest rank) and max, None each without values."""
    ordered = sorted(values)
    if not ordered:
        return {"p50": None, "p95": None, "p99": None, "max": None}

    def rank(percent: int) -> float:
        return round(ordered[max(0, -(-percent * len(ordered) // 100) - 1)], 2)

    return {"p50": rank(50), "p95": rank(95), "p99": rank(99), "max": round(ordered[-1], 2)}


def read(folder: Path | str) -> CallHistory:
    """Merge the files of all processes. Raises ValueError for a line that is not an event, except for a torn last
    line."""
    calls: list[Call] = []
    for path in sorted(Path(folder).glob(f"*{SUFFIX}")):
        calls += _calls(_events(path))
    return CallHistory(sorted(calls, key=lambda call: call.started))


def _events(path: Path) -> Iterator[dict[str, Any]]:
    lines = path.read_bytes().split(b"\n")
    torn = lines.pop()  # b"" if the last line is complete; a line that a power cut tore is not an event yet
    for number, line in enumerate(lines, 1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: not an event of a history: {error}") from error
    if torn:
        try:
            yield json.loads(torn)
        except ValueError:
            return


def _calls(events: Iterable[dict[str, Any]]) -> Iterator[Call]:
    begun: dict[str, dict[str, Any]] = {}
    for event in events:
        if event["event"] == "invoke":
            begun[event["key"]] = event
        else:
            yield _call(begun.pop(event["key"]), event)
    for invoked in begun.values():  # its client died before the answer, which may come at any time
        yield _call(invoked, {"event": ClientOutcome.INFO, "at": float("inf")})


def _call(invoked: dict[str, Any], done: dict[str, Any]) -> Call:
    return Call(
        invoked["key"],
        tuple((account, amount) for account, amount in invoked["legs"]),
        ClientOutcome(done["event"]),
        invoked["at"],
        done["at"],
        invoked["worker"],
        done["at"] != float("inf"),
        done.get("retries", 0),
        done.get("busy", False),
        done.get("error", ""),
        invoked.get("look"),
        done.get("seen"),
    )
