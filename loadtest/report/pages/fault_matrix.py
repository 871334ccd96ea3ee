"""The table in docs/faults.md: every strategy × every hazard, the claim and the evidence in one letter.

`manage.py fault_matrix report/faults.json` writes it between two marks in the page. A test reads it back and says when
it no longer fits the code: a strategy or a hazard that it has not, or a claim that its evidence contradicts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ledger.addresses import BASE_DIR
from ledger.strategies import STRATEGIES, find
from loadtest.faults.hazards import HAZARDS
from loadtest.report.pages.kinds import GROUPS, group_of
from loadtest.verdict.claims import agrees, claims
from loadtest.verdict.words import LETTERS, Word

PATH = BASE_DIR / "docs" / "faults.md"
BEGIN, END = "<!-- fault_matrix: begin -->", "<!-- fault_matrix: end -->"
WORDS = {letter: Word(name) for name, letter in LETTERS.items()}
#: kept as claimed; without the claim it is "k"
CLAIMED = "**K**"
MISSING = "–"

Cells = Mapping[tuple[str, str], str]


def section(reports: Sequence[Mapping[str, Any]]) -> str:
    """Return what stands between the marks. Of several runs the last one that has a cell counts."""
    found = {
        (each["strategy"], each["hazard"]): letter(each) for report in reports for each in report["results"]
    }
    where = reports[-1]["environment"]
    about = (
        "Made by `python manage.py fault_matrix FILE…` from what `python manage.py faults` wrote"
        f" ({len(found)} cells, {where['cores']} cores, commit {str(where['commit'])[:12]}).\n"
    )
    return "\n".join([about, *summary(found), "", *legend(), "", *matrix(found)]) + "\n"


def letter(cell: Mapping[str, Any]) -> str:
    """Return the cell: `!` behind it when the claim says otherwise. What is claimed now, not when it was measured."""
    word = Word(cell["verdict"])
    claimed = claims(find(cell["strategy"]).withstands, [HAZARDS[cell["hazard"]].word])
    if word == Word.KEPT and claimed:
        return CLAIMED
    return LETTERS[str(word)] + ("!" if agrees(claimed, word) is False else "")


def legend() -> Iterator[str]:
    yield (
        f"{CLAIMED} kept, as claimed · k kept, not claimed · L lost · C created · S stalled · R refused ·"
        f" ? inconclusive · `·` it cannot be touched · {MISSING} not measured · `!` against the claim. The columns:\n"
    )
    yield ", ".join(f"{number} {slug}" for number, slug in enumerate(HAZARDS, 1))


def matrix(found: Cells) -> Iterator[str]:
    yield "| strategy | " + " | ".join(str(number) for number in range(1, len(HAZARDS) + 1)) + " |"
    yield "|---|" + "---|" * len(HAZARDS)
    for strategy in STRATEGIES:
        cells = [found.get((strategy, hazard), MISSING) for hazard in HAZARDS]
        yield f"| `{strategy}` | " + " | ".join(cells) + " |"


def summary(found: Cells) -> Iterator[str]:
    """How many of each kind came through, of those that the hazard touched. Without those that lose anyway."""
    sound = [each for each in STRATEGIES if claims(find(each).withstands)]
    yield "| hazard | " + " | ".join(GROUPS) + " |"
    yield "|---|" + "---|" * len(GROUPS)
    for hazard in HAZARDS:
        kinds = ([found.get((s, hazard), MISSING) for s in sound if group_of(s) == group] for group in GROUPS)
        yield f"| {hazard} | " + " | ".join(map(_counted, kinds)) + " |"


def _counted(cells: Sequence[str]) -> str:
    if MISSING in cells:  # a part of them says nothing of all
        return MISSING
    touched = [word for word in map(_word, cells) if word != Word.NOT_RUN]
    return f"{sum(word == Word.KEPT for word in touched)} of {len(touched)}" if touched else "·"


def read(page: str) -> dict[tuple[str, str], str]:
    """Return the cells of the table in `page`."""
    between = page.partition(BEGIN)[2].partition(END)[0]
    lines = [_split(line) for line in between.splitlines() if line.startswith("| `")]
    legends = [line for line in between.splitlines() if line.startswith("1 ")]
    hazards = [each.split()[1] for each in (legends[0].split(", ") if legends else [])]
    return {
        (line[0].strip("`"), hazard): cell
        for line in lines
        for hazard, cell in zip(hazards, line[1:], strict=True)
    }


def complaints(page: str) -> list[str]:
    """Return in what the table in `page` does not fit the code. Nothing: it does."""
    found = read(page)
    wanted = [(strategy, hazard) for strategy in STRATEGIES for hazard in HAZARDS]
    told = [f"{s} × {h}: no cell" for s, h in wanted if not found.get((s, h))]
    told += [f"{s} × {h}: no such strategy or hazard" for s, h in found if (s, h) not in set(wanted)]
    return told + list(_contradictions({key: found[key] for key in wanted if found.get(key)}))


def _contradictions(found: Cells) -> Iterable[str]:
    for (strategy, hazard), cell in found.items():
        if cell == MISSING:
            continue
        word = _word(cell)
        claimed = claims(find(strategy).withstands, [HAZARDS[hazard].word])
        if word is None or cell.endswith("!") or agrees(claimed, word) is False:
            yield f"{strategy} × {hazard}: claims {'' if claimed else 'not '}to withstand it, the table says {cell}"
        elif word == Word.KEPT and claimed != (cell == CLAIMED):
            yield f"{strategy} × {hazard}: the claim was changed since"


def _word(cell: str) -> Word | None:
    return WORDS.get("k" if cell == CLAIMED else cell.removesuffix("!"))


def _split(line: str) -> list[str]:
    return [each.strip() for each in line.strip("|").split("|")]
