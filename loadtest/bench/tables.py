"""Shared by the tables of the bench: the row of a result, the spread of rounds, the goals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from loadtest.bench.goals import GoalState
from loadtest.bench.measured import Row
from loadtest.report import narrow


def blank(title: str, *columns: str) -> Table:
    """Return an empty table. The first column has words, the others have figures."""
    table = narrow.blank(1)
    table.title, table.title_justify = title, "left"
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    return table


def fill(
    table: Table, rows: Iterable[Row], name: Callable[[Row], str], figures: Callable[[Row], Iterable[str]]
) -> Table:
    """Add a line for each row: its name and figures, or why there are none."""
    for row in rows:
        if "reason" in row:
            word = row["verdict"].replace("-", " ")
            table.add_row(f"{escape(name(row))}: {word}, {escape(row['reason'])}", style="dim")
        else:
            table.add_row(escape(name(row)), *figures(row))
    for column in table.columns[1:]:  # a line may end between two words, never within a figure
        texts = (Text.from_markup(str(each)).plain for each in (column.header, *column.cells))
        column.min_width = max(len(word) for text in texts for word in text.split(" "))
    return table


def strategy(row: Row) -> str:
    return str(row["strategy"])


def right(row: Row) -> str:
    return "right" if row["right"] else "[bold red]wrong[/]"


def span(spread: Mapping[str, float] | None, digits: int) -> str:
    if spread is None:
        return ""
    return f"{spread['median']:,.{digits}f}  ({spread['min']:,.{digits}f} to {spread['max']:,.{digits}f})"


STYLES = {GoalState.MET: "green", GoalState.NEAR: "yellow", GoalState.MISSED: "red"}


def _measured(goal: Row) -> str:
    least, most = goal["spread"]["min"], goal["spread"]["max"]
    return f"{goal['measured']:g}" + ("" if least == most else f"  ({least:g} to {most:g})")


def judged(goals: Sequence[Row], warning: str | None = None) -> Table:
    table = blank("Goals, in this run", "", "goal", "measured", "")
    if warning:
        table.caption, table.caption_style, table.caption_justify = warning, "bold yellow", "left"
    for goal in goals:
        measured, state = "", f"[yellow]not measured[/]: {escape(goal.get('reason', ''))}"
        if goal["measured"] is not None:
            measured, state = _measured(goal), f"[{STYLES[goal['state']]}]{goal['state']}[/]"
        table.add_row(goal["name"], goal["goal"], measured, state)
    return table
