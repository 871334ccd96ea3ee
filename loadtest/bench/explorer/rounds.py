"""A case in rounds: our explorer and its peer take turns, each where it is fastest.

Our explorer shares one core with its servers, as each lane of `manage.py explore` does, because a turn on another core
costs a wake-up there. The peer runs in both places, and the better result counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from loadtest.bench.explorer.cases import SearchCase
from loadtest.bench.locks.pinning import pinned
from loadtest.bench.measured import Row, ratios, spread
from loadtest.verdict.words import Word
from lost_update_lab.scenarios.result import KEPT

ONE, ANY = "one core", "any core"
#: the addresses of a PostgreSQL and a Valkey
Urls = tuple[str, str]
JUDGED = {KEPT, Word.LOST}


def in_turns(
    case: SearchCase,
    rounds: int,
    places: Mapping[str, Urls],
    ours: Callable[[SearchCase, str, str], Iterator[Row]],
    peer: Callable[[SearchCase, str, str], Row],
) -> Iterator[Row]:
    """Yield a row for each of our searches, then the peer's. After a run without a verdict, the peer is not run in that
    place again, because each such run lasts as long as its time-outs."""
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
    """Merge rounds into one row: the round with the median speed, the worst of `right` and `replayed`, and the spread
    of the speeds."""
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
    """Return the peer's row, from the place where it is faster, with the `ratio` of our speed to its speed, round by
    round.

    A run without a verdict has no `ratio`: it lasted as long as one of the peer's time-outs, which says nothing about
    its speed.
    """
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
    """Return 9 for `9 of 10`, and -1 for "", if there was nothing to replay."""
    first = replayed.partition(" ")[0]
    return int(first) if first.isdigit() else -1
