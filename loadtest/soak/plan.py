"""What is done, and when: everything at a count of completed postings, so that a slow machine does the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

STRATEGIES = ("select-for-update", "atomic-update", "single-writer", "optimistic-version", "fenced")
BACKGROUND, WEB = "background-worker", "web-worker"
KINDS = (WEB, BACKGROUND, "valkey", "postgres", "web-server")
#: one of several of its kind, which touches some books only: struck while it works for a book under test
AIMED = (BACKGROUND, WEB)
#: of all postings: nothing happens before and after these shares, so that there is a before and an after
FIRST, LAST = 0.05, 0.85


@dataclass(frozen=True)
class Event:
    """After `count` completed postings: a `strike` of this kind, or the start of an import (kind "")."""

    count: int
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class SoakPlan:
    """`postings` of all clients together, at least; `strikes` in number; `imports` into each book, of `lines` lines;
    `at_most` seconds, after which no posting is begun any more (0: no limit);
    `processes` × `callers` clients a book; each client loses its 2nd reply, and every `drop`th after it (0: none)."""

    strategies: tuple[str, ...] = STRATEGIES
    postings: int = 100_000
    strikes: int = 60
    imports: int = 5
    lines: int = 200
    accounts: int = 2
    processes: int = 2
    callers: int = 2
    drop: int = 50
    at_most: float = 0
    seed: int = 0

    def events(self) -> Iterator[Event]:
        """Yield the strikes and imports in their order. Among the first `strikes`: each kind, those that are AIMED
        once for each strategy."""
        chance = random.Random(self.seed)  # noqa: S311  (no secret)
        further = AIMED * (len(self.strategies) - 1)
        kinds = [*KINDS, *further, *chance.choices(KINDS, k=self.strikes)][: self.strikes]
        chance.shuffle(kinds)
        counts = sorted(chance.uniform(FIRST, LAST) for _ in kinds)
        strikes = [Event(int(share * self.postings), kind) for share, kind in zip(counts, kinds, strict=True)]
        begun = [Event(int(LAST * self.postings * n / self.imports)) for n in range(self.imports)]
        yield from sorted([*begun, *strikes], key=lambda event: event.count)

    def end(self, done: int) -> int:
        """Return after how many postings the clients may stop, if the last event came when so many were `done`."""
        return max(self.postings, done + int((1 - LAST) * self.postings))

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "strategies": list(self.strategies)}
