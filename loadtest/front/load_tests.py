"""What load tests found, where the explorer and the faults decide nothing: the table of docs/choosing.md.

Load tests have no file of data in docs/data. The first word of a row of that table is the verdict under contention.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from ledger.strategies import STRATEGIES
from loadtest.front.documents import FOLDER
from loadtest.verdict.words import Word

PAGE, SECTION = "choosing.md", "results"


@cache
def verdicts() -> Mapping[str, Word]:
    """Return {strategy: its verdict under contention}."""
    file = FOLDER / PAGE
    return read(file.read_text(encoding="utf-8")) if file.is_file() else {}


def read(page: str) -> dict[str, Word]:
    """Read the table below the heading "Results"."""
    section = re.search(rf"^## {SECTION}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL | re.IGNORECASE)
    found = dict[str, Word]()
    for verdict, strategies in re.findall(
        r"^\| `([\w-]+)`[^|]*\|([^|]*)\|$", section[1] if section else "", re.MULTILINE
    ):
        if verdict in set(Word):
            found |= {
                slug: Word(verdict) for slug in re.findall(r"`([\w-]+)`", strategies) if slug in STRATEGIES
            }
    return found
