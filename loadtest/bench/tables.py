"""What the tables of the bench share: a row of a result, a spread of rounds, the goals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

Row = Mapping[str, Any]


def blank(title: str, *columns: str) -> Table:
    """The first column is words, the others figures."""
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    return table


def span(spread: Mapping[str, float], digits: int) -> str:
    return f"{spread['median']:,.{digits}f}  ({spread['min']:,.{digits}f} to {spread['max']:,.{digits}f})"


def judged(goals: Sequence[Row], warning: str | None = None) -> Table:
    table = blank("Goals, in this run", "", "goal", "measured", "")
    if warning:
        table.caption, table.caption_style, table.caption_justify = warning, "bold yellow", "left"
    for goal in goals:
        measured = "not run" if goal["measured"] is None else f"{goal['measured']:g}"
        met = "[green]met[/]" if goal["met"] else "[red]missed[/]"
        if goal["measured"] is None:
            met = "[yellow]not measured[/]"
        table.add_row(goal["name"], goal["goal"], measured, met)
    return table
