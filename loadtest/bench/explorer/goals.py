"""The goals of the explorer: ratios to plain runs, to raw commands and to a peer, in one run."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from loadtest.bench.explorer import LEDGER, ORM, USUAL
from loadtest.bench.explorer.cases import CASES
from loadtest.bench.explorer.cores import REAL_CORES
from loadtest.bench.explorer.peer import PEER
from loadtest.bench.goals import at_least
from loadtest.bench.measured import Row, spread

PLAIN = 0.1  # of the rate of the same work without an explorer
LEFT_OUT = "this run left it out"


def judge(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield each goal (bench/goals.py)."""
    by_name: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_name.setdefault(row["strategy"], {})[row["case"]] = row
    usual, peer = (by_name.get(name, {}) for name in (USUAL, PEER))
    cores = list(by_name.get(REAL_CORES, {}).values())
    amiss = next(filter(None, map(_amiss, cores)), "" if cores else LEFT_OUT)
    yield at_least(
        "schedules ÷ plain runs of the same work, psycopg, all cores, every schedule by real code",
        PLAIN,
        None if amiss else spread(row["of_plain"] for row in cores),
        amiss,
    )
    ledger: Row = next((row for row in rows if row["strategy"] == LEDGER), {"reason": LEFT_OUT})
    missing = amiss or _amiss(ledger)
    yield at_least(
        f"schedules/s, {ORM} through Django's ORM ÷ psycopg by real code, all cores",
        0.5,
        None if missing else float(ledger["schedules_per_s"]) / _pooled(cores),
        missing,
    )
    rightly = sum(row["right"] is True for row in usual.values()) if usual.keys() == CASES.keys() else None
    yield at_least("cases that the explorer judges rightly", len(CASES), rightly, LEFT_OUT)
    ratios = [row["ratio"] for row in peer.values() if "ratio" in row]
    yield at_least(
        f"schedules/s ÷ {PEER}'s on the same case, median of the cases that it judged",
        10,
        {which: statistics.median(each[which] for each in ratios) for which in ratios[0]} if ratios else None,
        f"{PEER} came to no verdict",
    )


def _amiss(row: Row) -> str:
    """Return why a row's figures do not count: there are none, or the search was wrong. "": they count."""
    wrong = "" if row.get("right", True) else f"the search of {row['case']} came to: {row['verdict']}"
    return str(row.get("reason", wrong))


def _pooled(rows: Sequence[Row]) -> float:
    """Return the schedules of all cases divided by their seconds: a small fast case does not outweigh a large slow
    one."""
    return float(sum(row["schedules"] for row in rows) / sum(row["seconds"] for row in rows))
