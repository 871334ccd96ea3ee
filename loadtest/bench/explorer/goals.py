"""What the explorer is held to."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from loadtest.bench.explorer import LEDGER, ORM, USUAL
from loadtest.bench.explorer.cases import CASES
from loadtest.bench.explorer.cores import REAL_CORES
from loadtest.bench.explorer.peer import PEER
from loadtest.bench.goals import at_least, at_most
from loadtest.bench.measured import Row

LEFT_OUT = "this run left it out"


def judge(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield each goal."""
    by_name: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_name.setdefault(row["strategy"], {})[row["case"]] = row
    usual, peer = (by_name.get(name, {}) for name in (USUAL, PEER))
    cores = list(by_name.get(REAL_CORES, {}).values())
    amiss = next(filter(None, map(_amiss, cores)), "")
    yield at_least(
        "schedules/s, psycopg, all cores, no reduction, every schedule by real code",
        700,
        None if amiss else _pooled(cores),
        amiss or LEFT_OUT,
    )
    ledger: Row = next((row for row in rows if row["strategy"] == LEDGER), {"reason": LEFT_OUT})
    name = f"schedules/s, {ORM} through Django's ORM, all cores"
    amiss = _amiss(ledger)
    yield at_least(name, 400, None if amiss else ledger["schedules_per_s"], amiss)
    rightly = sum(row["right"] is True for row in usual.values()) if usual.keys() == CASES.keys() else None
    yield at_least("cases that the explorer judges rightly", len(CASES), rightly, LEFT_OUT)
    ratios = [row["ratio"]["median"] for row in peer.values() if "ratio" in row]
    yield at_least(
        f"schedules/s ÷ {PEER}'s on the same case, median of the cases that it judged",
        10,
        statistics.median(ratios) if ratios else None,
        f"{PEER} came to no verdict",
    )
    yield at_most(
        "all strategies, 2 workers, 1 fault, seconds",
        90,
        None,
        f"here only {ORM} is explored: `time make explore` measures it",
    )


def _amiss(row: Row) -> str:
    """Why its figures count for nothing: it has none, or did not find what is true."""
    wrong = "" if row.get("right", True) else f"the search of {row['case']} came to: {row['verdict']}"
    return str(row.get("reason", wrong))


def _pooled(rows: Sequence[Row]) -> float | None:
    seconds: float = sum(row["seconds"] for row in rows)
    return sum(row["schedules"] for row in rows) / seconds if seconds else None
