"""The tables of `bench explorer`, from the rows of its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from loadtest.bench.explorer import UNREDUCED, USUAL
from loadtest.bench.explorer.peer import PEER
from loadtest.bench.measured import Row
from loadtest.bench.tables import blank, fill, span


def tables(rows: Sequence[Row]) -> Iterator[Table]:
    heads = ("verdict", "schedules", "from the recording", "schedules/s", "steps/s", "replayed")
    table = blank("The same cases, no fault, side by side", "case, by", *heads)
    yield fill(table, rows, lambda row: f"{row['case']}, {row['strategy']}", figures)
    yield factors(rows)
    yield compared(rows)


def figures(row: Row) -> tuple[str, ...]:
    wrong = "" if row.get("right", True) else " [bold red](wrong or unknown)[/]"
    return (
        row["verdict"] + wrong,
        f"{row['schedules']:,}",
        f"{row['played']:,}",
        f"{row['schedules_per_s']:,.1f}",
        "" if row["steps_per_s"] is None else f"{row['steps_per_s']:,.0f}",
        row["replayed"],
    )


def compared(rows: Sequence[Row]) -> Table:
    """Return our schedules per second, each by real code, beside the peer's in its better place, round by round."""
    table = blank(
        "Side by side, each schedule by real code",
        "case",
        "ours/s",
        f"{PEER}'s/s",
        "where it is faster",
        "ratio",
    )
    unreduced = {row["case"]: row for row in rows if row["strategy"] == UNREDUCED}
    for row in rows:
        if "ratio" in row:
            ours = span(unreduced[row["case"]]["per_s"], 0)
            table.add_row(
                escape(row["case"]), ours, span(row["per_s"], 0), row["place"], span(row["ratio"], 1)
            )
    return table


def factors(rows: Sequence[Row]) -> Table:
    """Return how many schedules the reductions save."""
    table = blank("Reduction", "case", "no reduction", "reduced", "factor")
    usual = {row["case"]: row for row in rows if row["strategy"] == USUAL}
    for row in rows:
        if row["strategy"] == UNREDUCED:
            few = usual[row["case"]]["schedules"]
            table.add_row(
                escape(row["case"]), f"{row['schedules']:,}", f"{few:,}", f"{row['schedules'] / few:.1f}"
            )
    return table
