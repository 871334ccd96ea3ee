"""The output of a measuring command: tables and sentences, or the results as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

from django.core.management import BaseCommand
from rich.console import Console
from rich.markup import escape

#: the width of a file or a pipe, unless the environment sets one (COLUMNS)
WIDTH = 120


def console(out: Any, width: int = WIDTH) -> Console:
    """Return a rich console for `out`, a stream or the stdout of a Django command."""
    drawn = Console(file=getattr(out, "_out", out), emoji=False)  # :lock: in a name is not an emoji
    if not drawn.is_terminal and not os.environ.get("COLUMNS", "").isdigit():
        drawn.width = width
    return drawn


def tell(command: BaseCommand, whole: Any, files: Iterable[str]) -> None:
    """Print the results as JSON. The names of the written files go to stderr."""
    command.stdout.write(json.dumps(whole, indent=2, ensure_ascii=False))
    for sentence in files:
        command.stderr.write(sentence)


def show(on: Console, tables: Iterable[Any], sentences: Iterable[str]) -> None:
    """Print the tables, and one line for each sentence, never wrapped, so that it can be searched."""
    for table in tables:
        on.print(table)
    for sentence in sentences:
        on.print(escape(sentence), soft_wrap=True, highlight=False)
