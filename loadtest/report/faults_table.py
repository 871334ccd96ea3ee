"""The matrix of hazards for the terminal: a word in each cell if there is room, otherwise one letter under the hazard's
number, both as in docs/faults.md.

 strategy              1  2  3        what fits side by side; the other hazards stand in further blocks below
 ──────────────────────────────
 no-lock               L  L  L!
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import ceil
from textwrap import wrap
from typing import Any

from rich.console import RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from loadtest.faults.hazards import ADVERSARIES
from loadtest.report.faults import not_applicable, rows
from loadtest.report.narrow import blank, filled, width_of
from loadtest.report.terminal import WORD_STYLES, was_stopped
from loadtest.verdict.words import LETTERS

TITLE = "What happens to the money"
#: short forms of words
SHORT = {word: LETTERS[word] for word in ("inconclusive", "not-run")}
#: characters of a heading's line and of the gap between cells of words, for wide and for narrow tables
ROOMY, NARROW = (11, 2), (7, 1)
#: characters of a cell with a letter, of the gap between such cells, and of the narrowest column of names
LETTER, GAP, NAME = 2, 1, 20
AGAINST, NOT_REACHED = "!", "–"
CLAIMED = LETTERS["kept"].upper()

Cell = Mapping[str, Any]
Lines = Mapping[str, Mapping[str, Cell | None]]


def tables(results: Sequence[Cell], width: int) -> list[RenderableType]:
    """Return what to print, at most `width` wide: the meanings of the cells, and the matrix."""
    by_strategy, hazards = rows(results), list(dict.fromkeys(each["hazard"] for each in results))
    by_hazard = {
        hazard: {name: cells.get(hazard) for name, cells in by_strategy.items()} for hazard in hazards
    }
    both = [("strategy", by_strategy, hazards), ("hazard", by_hazard, list(by_strategy))]
    both.sort(key=lambda each: len(each[2]))  # the longer side runs down the page
    for (heading, gap), (first, lines, columns) in product((ROOMY, NARROW), both):
        drawn = _words(first, lines, columns, heading, gap)
        if width_of(drawn) <= width:
            said = {sign: told for sign, told in _said(results).items() if not sign.isalpha()}
            return [Text(_explained(said, width)), drawn]
    return [Text(_explained(_said(results), width)), *_blocks(by_strategy, hazards, width)]


def _words(first: str, lines: Lines, columns: Sequence[str], heading: int, gap: int) -> Table:
    drawn = blank(gap)
    drawn.add_column(first, no_wrap=True)
    for name in columns:
        drawn.add_column(escape("\n".join(wrap(name, heading, break_long_words=False))), no_wrap=True)
    for name, cells in lines.items():
        drawn.add_row(escape(name), *(_styled(cells.get(each), _word(cells.get(each))) for each in columns))
    return drawn


def _blocks(lines: Lines, hazards: Sequence[str], width: int) -> Iterator[RenderableType]:
    """Yield as few blocks of hazards as possible, of equal size, each with the names of its hazards below it."""
    cell = LETTER + GAP
    names = min(max(map(len, lines)), max(NAME, width - 8 * cell))
    abreast = max(1, (width - names) // cell)
    size = ceil(len(hazards) / ceil(len(hazards) / abreast))
    for begin in range(0, len(hazards), size):
        block = hazards[begin : begin + size]
        drawn = blank(GAP)
        drawn.add_column("strategy", width=names, overflow="fold")
        for hazard in block:
            drawn.add_column(_number(hazard), width=LETTER, no_wrap=True)
        for name, cells in lines.items():
            drawn.add_row(
                escape(name), *(_styled(cells.get(each), _letter(cells.get(each))) for each in block)
            )
        yield ""
        yield drawn
        yield Text(filled([f"{_number(each)} {each}" for each in block], ", ", width))


def _number(hazard: str) -> str:
    return str(list(ADVERSARIES).index(hazard) + 1)


def _word(cell: Cell | None) -> str:
    return _marked(cell, lambda each: SHORT.get(each["verdict"], each["verdict"]))


def _letter(cell: Cell | None) -> str:
    return _marked(cell, lambda each: CLAIMED if _as_claimed(each) else LETTERS[each["verdict"]])


def _marked(cell: Cell | None, text: Any) -> str:
    if cell is None:
        return ""
    if cell["verdict"] == "not-run" and not not_applicable(cell):
        return NOT_REACHED
    return str(text(cell)) + AGAINST * (cell["agrees"] is False)


def _as_claimed(cell: Cell) -> bool:
    return cell["verdict"] == "kept" and bool(cell["claimed"])


def _styled(cell: Cell | None, text: str) -> Text:
    style = WORD_STYLES[cell["verdict"]] if cell else ""
    if text == LETTERS["kept"]:
        style = style.removeprefix("bold ")  # kept, but not claimed
    return Text(text, style)


def _said(results: Sequence[Cell]) -> dict[str, str]:
    """Return sign → meaning, for the signs that occur."""
    reached = [each for each in results if each["verdict"] != "not-run" or not_applicable(each)]
    found = {each["verdict"] for each in reached if not _as_claimed(each)}
    said = {CLAIMED: "kept, as claimed"} if any(map(_as_claimed, reached)) else {}
    told = {"kept": "kept, not claimed", "not-run": "not applicable: the hazard cannot touch it"}
    kept_first = sorted(LETTERS, key=lambda word: word != "kept")
    said |= {LETTERS[word]: told.get(word, word) for word in kept_first if word in found}
    if any(each["agrees"] is False for each in reached):
        said[AGAINST] = "contradicts the claim"
    if len(reached) < len(results):
        left = [each for each in results if each not in reached]
        lacking = any(not was_stopped(each) for each in left)
        stopped = any(was_stopped(each) for each in left)
        said[NOT_REACHED] = " or ".join(["a server is missing"] * lacking + ["stopped before"] * stopped)
    return said


def _explained(said: Mapping[str, str], width: int) -> str:
    if not said:
        return TITLE
    return TITLE + ":\n" + filled([f"{sign} {told}" for sign, told in said.items()], " | ", width)
