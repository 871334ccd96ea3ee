"""A case in turns, round after round: our explorer and its peer next to each other, each where it is fastest.

Our explorer keeps to one core with its servers, as each lane of `manage.py explore` does: whoever's turn comes on
another core has to be woken up there first. The peer is asked in both places, and its better one counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from loadtest.bench.explorer.cases import Case
from loadtest.bench.locks.pinning import pinned
from loadtest.bench.measured import Row, ratios, spread

ONE, ANY = "one core", "any core"
#: a PostgreSQL and a Valkey: where they are
Urls = tuple[str, str]
JUDGED = {"kept", "lost"}


def in_turns(
    case: Case,
    rounds: int,
    places: Mapping[str, Urls],
    ours: Callable[[Case, str, str], Iterator[Row]],
    peer: Callable[[Case, str, str], Row],
) -> Iterator[Row]:
    """Yield a row for each of ours, then the peer's. In a place where it came to no verdict it is not asked again:
    that takes as long as its time-outs are."""
    own: dict[str, list[Row]] = {}
    theirs: dict[str, list[Row]] = {place: [] for place in places}
    for _ in range(rounds):
        with pinned():
            for row in ours(case, *places[ONE]):
                own.setdefault(row["strategy"], []).append(row)
        for place, urls in places.items():
            if _judged(theirs[place]):
                with pinned(place == ONE):
                    theirs[place].append(peer(case, *urls) | {"place": place})
    yield from map(of_rounds, own.values())
    yield compared(list(own.values())[-1], [rows for rows in theirs.values() if rows])


def of_rounds(rows: Sequence[Row]) -> Row:
    """Several of the same as one: the round in the middle by its speed, the least of what was right and of what was
    replayed, and the spread of the speeds."""
    if failed := [row for row in rows if "schedules_per_s" not in row]:
        return failed[0]
    by_speed = sorted(rows, key=_speed)
    words = sorted({row["verdict"] for row in rows})
    return {
        **by_speed[(len(rows) - 1) // 2],
        "verdict": " or ".join(words),
        "right": None if any(row["right"] is None for row in rows) else all(row["right"] for row in rows),
        "replayed": min((row["replayed"] for row in rows), key=_how_many),
        "per_s": spread(map(_speed, rows)),
    }


def compared(ours: Sequence[Row], places: Sequence[Sequence[Row]]) -> Row:
    """The peer's row, from the place where it is faster, with `ratio`: ours to its own, round by round. Without one
    where it came to no verdict: what it spends there is one of its time-outs, and says nothing of its speed."""
    judged = [rows for rows in places if _judged(rows)]
    if not judged:
        return of_rounds(places[0])
    best = max(judged, key=lambda rows: statistics.median(map(_speed, rows)))
    return of_rounds(best) | {"ratio": ratios(map(_speed, ours), map(_speed, best))}


def _judged(rows: Sequence[Row]) -> bool:
    return all(row["verdict"] in JUDGED for row in rows)


def _speed(row: Row) -> float:
    return float(row["schedules_per_s"])


def _how_many(replayed: str) -> int:
    """`9 of 10`; "" where there was nothing to replay."""
    first = replayed.partition(" ")[0]
    return int(first) if first.isdigit() else -1
