"""Tables for narrow terminals: without a frame, wrapped between the parts of a line, of a known width."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table


def blank(gap: int) -> Table:
    """Return an empty table. `gap`: characters between two columns; the box draws one of them."""
    return Table(box=box.SIMPLE_HEAD, padding=(0, gap - 1, 0, 0), show_edge=False, pad_edge=False)


def filled(parts: Sequence[str], between: str, width: int) -> str:
    """Return lines of at most `width`, wrapped only between the parts."""
    whole = between.join(each.replace(" ", "\0") for each in parts)
    return fill(whole, width, break_on_hyphens=False, break_long_words=False).replace("\0", " ")


def width_of(drawn: Table) -> int:
    wide = Console(width=100_000)
    return Measurement.get(wide, wide.options, drawn).maximum
