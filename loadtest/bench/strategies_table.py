"""What `bench strategies` and `bench lock-tables` print, from the rows of their results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from loadtest.bench.tables import Row, blank, judged, span


def tables(rows: Sequence[Row], goals: Sequence[Row]) -> Iterator[Table]:
    """The tables of `bench strategies`."""
    for accounts in sorted({row["accounts"] for row in rows if row["measure"] == "postings"}):
        title = f"8 callers, durable commits, accounts: {accounts}"
        table = blank(title, "", "postings/s", "× pgbench", "client µs", "balances")
        for row in _of(rows, "postings"):
            if row["accounts"] == accounts:
                spans = span(row["per_s"], 0), span(row["ratio"], 2), span(row["client_us"], 0)
                table.add_row(escape(row["strategy"]), *spans, balances(row))
        yield table
    if imports := _of(rows, "import"):
        table = blank("Imports on 100 accounts", "", "lines", "lines/s", "× bulk_create", "balances")
        for row in imports:
            spans = span(row["per_s"], 0), span(row["ratio"], 1)
            table.add_row(row["strategy"], f"{row['lines']:,}", *spans, balances(row))
        yield table
    if reconciles := _of(rows, "reconcile"):
        table = blank("Reconcile", "entries", "seconds", "MiB above the start")
        for row in reconciles:
            table.add_row(f"{row['entries']:,}", f"{row['seconds']:.2f}", f"{row['memory_mib']:.1f}")
        yield table
    if growth := _of(rows, "growth"):
        table = blank("How cost grows", "", "accounts", "callers", "postings/s")
        for row in growth:
            table.add_row(row["strategy"], str(row["accounts"]), str(row["callers"]), f"{row['per_s']:,.0f}")
        yield table
    yield judged(goals)


def balances(row: Row) -> str:
    return "right" if row["right"] else "[bold red]wrong[/]"


def lock_tables(rows: Sequence[Row]) -> Table:
    """The table of `bench lock-tables`."""
    heads = ("names", "locks/s", "× centre-lock", "errors")
    table = blank("Lock and unlock, 8 callers", "lock and store", *heads)
    for row in rows:
        name = f"{row['strategy']} on {row['store']}"
        if "reason" in row:
            table.add_row(name, "", "not run", escape(row["reason"]), "", style="dim")
        else:
            spans = span(row["per_s"], 0), span(row["ratio"], 2)
            table.add_row(name, row["names"], *spans, str(row["errors"]))
    return table


def _of(rows: Sequence[Row], measure: str) -> list[Row]:
    return [row for row in rows if row["measure"] == measure]
