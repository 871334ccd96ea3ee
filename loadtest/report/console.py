"""What a command prints when it has measured: tables, sentences, and where the files are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

#: a file or a pipe has no width of its own
WIDTH = 120


def console(out: Any, width: int = WIDTH) -> Console:
    """Return rich's console on `out`, a stream or the stdout of a Django command."""
    drawn = Console(file=getattr(out, "_out", out), emoji=False)  # mine:lock is a name
    if not drawn.is_terminal:
        drawn.width = width
    return drawn


def show(on: Console, tables: Iterable[Any], sentences: Iterable[str], *written: Path) -> None:
    """Print the tables, a line for each sentence (never broken, so that it can be searched), then the files."""
    for table in tables:
        on.print(table)
    for sentence in (*sentences, *(f"Written: {path}" for path in written)):
        on.print(escape(sentence), soft_wrap=True, highlight=False)
