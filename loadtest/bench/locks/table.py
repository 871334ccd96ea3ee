"""The tables of `bench locks`, from the rows of its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.table import Table

from loadtest.bench.locks.contenders import OURS
from loadtest.bench.measured import Row
from loadtest.bench.tables import blank, fill, right, span, strategy

WHERE = {True: "servers and clients on one CPU", False: "on all CPUs"}


def tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield one table for each part that ran."""
    for pinned, where in WHERE.items():
        ours = [row for row in rows if row["pinned"] is pinned]
        for drawn, measures in DRAWN.items():
            if its := [row for row in ours if row["measure"] in measures]:
                yield drawn(its, where)
        if limits := [row for row in ours if row["measure"] == "limit"]:
            yield limit(limits, _of_ours(ours), where)


def _of_ours(rows: Sequence[Row]) -> float | None:
    """Return fair-lock's sections per second with 8 processes, if that part ran."""
    measured = (row for row in rows if row["measure"] == "contended" and row["strategy"] == OURS)
    return next((row["per_s"]["median"] for row in measured if "reason" not in row), None)


def uncontended(rows: Sequence[Row], where: str) -> Table:
    table = blank(f"Acquire and release, uncontended · {where}", "", "cycles/s", "fair-lock is × as fast")
    return fill(
        table,
        sorted(rows, key=lambda row: -row.get("per_s", {"median": 0})["median"]),
        strategy,
        lambda row: (span(row["per_s"], 0), span(row.get("ratio"), 2)),
    )


def contended(rows: Sequence[Row], where: str) -> Table:
    heads = (
        "sections per s",
        "wait ms p50",
        "p99",
        "max",
        "least / most",
        "commands",
        "server CPU",
        "counter",
    )

    def figures(row: Row) -> tuple[str, ...]:
        return (
            f"{row['per_s']['median']:,.0f}",
            *(f"{row['wait_ms'][which]:,.2f}" for which in ("p50", "p99", "max")),
            *(f"{row[which]['median']:.2f}" for which in ("fairness", "commands", "server_cpu")),
            right(row),
        )

    table = blank(f"A GET and a SET inside · {where}", "", *heads)
    return fill(table, rows, lambda row: f"{row['strategy']}, {row['measure']} ({row['processes']})", figures)


def limit(rows: Sequence[Row], ours: float | None, where: str) -> Table:
    """Return the share that fair-lock reaches of the rate of two raw sockets."""

    def figures(row: Row) -> tuple[str, ...]:
        share = "not measured" if ours is None else f"{ours / row['per_s']['median']:.0%}"
        return f"{row['per_s']['median']:,.0f}", share

    table = blank(f"Hand-overs a second · {where}", "", "hand-overs/s", "fair-lock, 8 processes, reaches")
    return fill(table, rows, strategy, figures)


def waiters(rows: Sequence[Row], where: str) -> Table:
    heads = ("sections per s", "p99 ms", "commands", "server CPU", "least / most")
    return fill(
        blank(f"How waiters learn of a release · {where}", "processes, way", *heads),
        rows,
        lambda row: f"{row['processes']}, {row['way']} ({row['strategy']})",
        lambda row: (
            f"{row['sections_per_s']:,.0f}",
            f"{row['wait_ms']['p99']:,.2f}",
            *(f"{row[which]:.2f}" for which in ("commands", "server_cpu", "fairness")),
        ),
    )


#: table → its measures. The limit has a table of its own, beside fair-lock's figure
DRAWN: dict[Callable[[Sequence[Row], str], Table], tuple[str, ...]] = {
    uncontended: ("uncontended",),
    contended: ("alone", "contended", "alone, 1 ms", "contended, 1 ms"),
    waiters: ("waiters",),
}
