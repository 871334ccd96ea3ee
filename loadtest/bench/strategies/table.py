"""The tables of `bench strategies` and `bench lock-tables`, from the rows of their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from loadtest.bench.measured import Row
from loadtest.bench.tables import blank, fill, right, span, strategy


def tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield the tables of `bench strategies`."""
    for accounts in sorted({row["accounts"] for row in rows if row["measure"] == "postings"}):
        title = f"8 callers, accounts: {accounts}"
        table = blank(title, "", "postings/s", "× pgbench", "client µs", "balances")
        its = [row for row in _of(rows, "postings") if row["accounts"] == accounts]
        yield fill(table, its, strategy, postings)
    if imports := _of(rows, "import"):
        table = blank(
            "Imports on 100 accounts", "", "lines", "lines/s", "× bulk_create", "× the limit", "balances"
        )
        yield fill(table, imports, strategy, imported)
    if reconciles := _of(rows, "reconcile"):
        table = blank("Reconcile", "entries", "seconds", "× reading them", "MiB above the start")
        yield fill(
            table,
            reconciles,
            lambda row: f"{row['entries']:,}",
            lambda row: (f"{row['seconds']:.2f}", f"{row['of_reading']:.2f}", f"{row['memory_mib']:.1f}"),
        )
    if growth := _of(rows, "growth"):
        table = blank("How cost grows", "", "accounts", "callers", "postings/s")
        yield fill(
            table,
            growth,
            strategy,
            lambda row: (str(row["accounts"]), str(row["callers"]), f"{row['per_s']:,.0f}"),
        )


def postings(row: Row) -> tuple[str, ...]:
    return span(row["per_s"], 0), span(row.get("ratio"), 2), span(row["client_us"], 0), right(row)


def imported(row: Row) -> tuple[str, ...]:
    shares = span(row["ratio"], 1), span(row.get("of_limit"), 2)
    return f"{row['lines']:,}", span(row["per_s"], 0), *shares, right(row)


def lock_tables(rows: Sequence[Row]) -> Table:
    """Return the table of `bench lock-tables`."""
    heads = ("names", "locks/s", "× centre-lock", "errors")
    return fill(
        blank("Lock and unlock, 8 callers", "lock and store", *heads),
        rows,
        lambda row: f"{row['strategy']} on {row['store']}",
        lambda row: (row["names"], span(row["per_s"], 0), span(row.get("ratio"), 2), str(row["errors"])),
    )


def _of(rows: Sequence[Row], measure: str) -> list[Row]:
    return [row for row in rows if row["measure"] == measure]
