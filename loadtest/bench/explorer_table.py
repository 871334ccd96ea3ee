"""What `bench explorer` prints, from the rows of its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from loadtest.bench.tables import Row, blank, judged


def tables(rows: Sequence[Row], goals: Sequence[Row]) -> Iterator[Table]:
    heads = ("verdict", "schedules", "schedules/s", "steps/s", "replayed")
    table = blank("The same cases, two workers, no fault, side by side", "case", "by", *heads)
    for row in rows:
        if row["verdict"] == "not-run":
            table.add_row(escape(row["case"]), row["strategy"], "not run", escape(row["reason"]), style="dim")
            continue
        wrong = "" if row.get("right", True) else " [bold red](wrong or unknown)[/]"
        table.add_row(
            escape(row["case"]),
            row["strategy"],
            row["verdict"] + wrong,
            f"{row['schedules']:,}",
            f"{row['schedules_per_s']:,.1f}",
            "" if row["steps_per_s"] is None else f"{row['steps_per_s']:,.0f}",
            row["replayed"],
        )
    yield table
    yield factors(rows)
    yield judged(goals)


def factors(rows: Sequence[Row]) -> Table:
    """How many schedules the reductions save."""
    table = blank("Reduction", "case", "no reduction", "reduced", "factor")
    full = {row["case"]: row for row in rows if row["strategy"] == "explorer, reduction full"}
    for row in rows:
        if row["strategy"] == "explorer, reduction none":
            few = full[row["case"]]["schedules"]
            table.add_row(
                escape(row["case"]), f"{row['schedules']:,}", f"{few:,}", f"{row['schedules'] / few:.1f}"
            )
    return table
