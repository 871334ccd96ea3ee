"""What `bench locks` prints, from the rows of its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from loadtest.bench.tables import Row, blank, judged, span

WHERE = {True: "servers and clients on one CPU", False: "on all CPUs"}


def tables(rows: Sequence[Row], goals: Sequence[Row], warning: str | None = None) -> Iterator[Table]:
    """One for each part that ran, then the goals. `warning`: why they say little."""
    for pinned, where in WHERE.items():
        ours = [row for row in rows if row["pinned"] is pinned]
        for part, drawn in DRAWN.items():
            if any(part(row) for row in ours):
                yield drawn([row for row in ours if part(row)], where)
        if limits := [row for row in ours if row["measure"] == "limit"]:
            yield limit(limits, _of_ours(ours), where)
    yield judged(goals, warning)


def _of_ours(rows: Sequence[Row]) -> float | None:
    """fair-lock's sections a second with 8 processes, if that part ran."""
    measured = (row for row in rows if row["measure"] == "contended" and row["strategy"] == "fair-lock")
    return next((row["per_s"]["median"] for row in measured), None)


def uncontended(rows: Sequence[Row], where: str) -> Table:
    table = blank(
        f"Acquire and release, nobody else about · {where}", "", "cycles/s", "fair-lock is × as fast"
    )
    for row in sorted(rows, key=lambda row: -row.get("per_s", {"median": 0})["median"]):
        if "reason" in row:
            table.add_row(escape(row["strategy"]), "not run", escape(row["reason"]), style="dim")
        else:
            table.add_row(escape(row["strategy"]), span(row["per_s"], 0), span(row["ratio"], 2))
    return table


def contended(rows: Sequence[Row], where: str) -> Table:
    heads = ("sections/s", "wait ms p50", "p99", "max", "least/most", "commands", "server CPU", "counter")
    table = blank(f"A GET and a SET inside · {where}", "", *heads)
    for row in rows:
        wait = row["wait_ms"]
        table.add_row(
            f"{escape(row['strategy'])}, {row['measure']} ({row['processes']})",
            f"{row['per_s']['median']:,.0f}",
            *(f"{wait[which]:,.2f}" for which in ("p50", "p99", "max")),
            *(f"{row[which]['median']:.2f}" for which in ("fairness", "commands", "server_cpu")),
            "right" if row["counter_right"] else "[bold red]wrong[/]",
        )
    return table


def limit(rows: Sequence[Row], ours: float | None, where: str) -> Table:
    """How far from what the server and two raw sockets reach."""
    table = blank(f"Hand-overs a second · {where}", "", "hand-overs/s", "fair-lock, 8 processes, reaches")
    for row in rows:
        share = "not measured" if ours is None else f"{ours / row['per_s']['median']:.0%}"
        table.add_row(row["strategy"], f"{row['per_s']['median']:,.0f}", share)
    return table


def waiters(rows: Sequence[Row], where: str) -> Table:
    heads = ("sections/s", "p99 ms", "commands", "server CPU", "least/most")
    table = blank(f"How waiters learn of a release · {where}", "processes, way", *heads)
    for row in rows:
        table.add_row(
            f"{row['processes']}, {row['way']} ({row['strategy']})",
            f"{row['sections_per_s']:,.0f}",
            f"{row['wait_ms']['p99']:,.2f}",
            *(f"{row[which]:.2f}" for which in ("commands", "server_cpu", "fairness")),
        )
    return table


#: is this row in it? → how it is drawn
DRAWN: dict[Callable[[Row], bool], Callable[[Sequence[Row], str], Table]] = {
    lambda row: row["measure"] == "uncontended": uncontended,
    lambda row: "wait_ms" in row and row["measure"] != "waiters": contended,
    lambda row: row["measure"] == "waiters": waiters,
}
