"""The plan: every event happens at a count of completed postings, so a slow machine does the same as a fast one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

SOAKED_STRATEGIES = ("select-for-update", "atomic-update", "single-writer", "optimistic-version", "fenced")
BACKGROUND, WEB = "background-worker", "web-worker"
KINDS = (WEB, BACKGROUND, "valkey", "postgres", "web-server")
#: processes of which there are several, each working for some books only: struck while working for a book under test
AIMED = (BACKGROUND, WEB)
#: shares of all postings: no event happens before the first or after the last, so there is a before and an after
FIRST, LAST = 0.05, 0.85


@dataclass(frozen=True)
class SoakEvent:
    """After `count` completed postings: a `strike` of this kind, or the start of an import (kind "")."""

    count: int
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class SoakPlan:
    """`postings`: the least number, of all clients together. `imports`: files into each book, with `lines` lines each.
    `at_most`: seconds after which no posting is started (0: no limit). Each book has `processes` × `callers` clients.
    Each client loses its 2nd reply and every `drop`th after it (0: none)."""

    strategies: tuple[str, ...] = SOAKED_STRATEGIES
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

    def events(self) -> Iterator[SoakEvent]:
        """Yield the strikes and imports in order. The first `strikes` contain each kind, and the AIMED ones once for
        each strategy."""
        chance = random.Random(self.seed)  # noqa: S311  (not a secret)
        further = AIMED * (len(self.strategies) - 1)
        kinds = [*KINDS, *further, *chance.choices(KINDS, k=self.strikes)][: self.strikes]
        chance.shuffle(kinds)
        counts = sorted(chance.uniform(FIRST, LAST) for _ in kinds)
        strikes = [
            SoakEvent(int(share * self.postings), kind) for share, kind in zip(counts, kinds, strict=True)
        ]
        begun = [SoakEvent(int(LAST * self.postings * n / self.imports)) for n in range(self.imports)]
        yield from sorted([*begun, *strikes], key=lambda event: event.count)

    def end(self, done: int) -> int:
        """Return after how many postings the clients may stop, if `done` were completed at the last event."""
        return max(self.postings, done + int((1 - LAST) * self.postings))

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "strategies": list(self.strategies)}
