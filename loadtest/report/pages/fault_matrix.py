"""The table in docs/faults.md: every strategy × every hazard, the claim and the evidence in one letter.

`manage.py fault_matrix report/faults.json` merges a run into docs/data/faults.json, and writes the table from it,
between two marks in the page. A cell without data is shown as not measured. A test fails if the page is stale, or if a
claim contradicts its evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from ledger.addresses import BASE_DIR
from ledger.strategies import STRATEGIES, find
from loadtest.faults.hazards import ADVERSARIES
from loadtest.report.pages import measured
from loadtest.report.pages.kinds import GROUPS, group_of
from loadtest.verdict.claims import agrees, claims
from loadtest.verdict.words import LETTERS, Word

PATH = BASE_DIR / "docs" / "faults.md"
DATA = measured.FOLDER / "faults.json"
BEGIN, END = "<!-- fault_matrix: begin -->", "<!-- fault_matrix: end -->"
#: kept, as claimed; without the claim it is "k"
CLAIMED = "**K**"
MISSING = "–"

#: "strategy hazard" → verdict
Words = Mapping[str, str]


def merged(runs: measured.Runs, report: Mapping[str, Any]) -> measured.Runs:
    """Return `runs` with the cells of one more faults.json. A cell that lacked a server was not measured, and
    third-party locks have no row."""
    known = wanted()
    found = {
        key: each["verdict"]
        for each in report["results"]
        if (key := f"{each['strategy']} {each['hazard']}") in known
        and not (each["verdict"] == Word.NOT_RUN and each.get("remedy"))
    }
    return measured.merged(measured.kept_only(runs, known), report["environment"], found)


def wanted() -> dict[str, tuple[str, str]]:
    """Return each cell of the table, by its key in the data."""
    return {f"{strategy} {hazard}": (strategy, hazard) for strategy in STRATEGIES for hazard in ADVERSARIES}


def section(runs: measured.Runs) -> str:
    """Return the text between the marks."""
    words = measured.everything(runs)
    about = (
        "Made by `python manage.py fault_matrix FILE…` from what `python manage.py faults` wrote\n"
        f"({measured.provenance(runs, 'cells')}).\n"
        "\nThe front page of `make serve` shows the matrix under the hazards' names, beside the explorer's verdicts.\n"
    )
    return "\n".join([about, *summary(words), "", *legend(), "", *matrix(words)]) + "\n"


def letter(words: Words, strategy: str, hazard: str) -> str:
    """Return the cell, with `!` if it contradicts the claim. The current claim counts, not the one when measured."""
    if (found := words.get(f"{strategy} {hazard}")) is None:
        return MISSING
    word, claimed = Word(found), claimed_now(strategy, hazard)
    if word == Word.KEPT and claimed:
        return CLAIMED
    return LETTERS[str(word)] + ("!" if agrees(claimed, word) is False else "")


def claimed_now(strategy: str, hazard: str) -> bool:
    return claims(find(strategy).withstands, [ADVERSARIES[hazard].word])


def legend() -> Iterator[str]:
    meanings = (
        f"{CLAIMED} kept, as claimed · k kept, not claimed · L lost · C created · S stalled · R refused ·"
        f" ? inconclusive · `·` not applicable · {MISSING} {measured.NOT_MEASURED} · `!` contradicts the claim."
        " The columns:"
    )
    yield from (*_lines(meanings), "")
    yield from _lines(", ".join(f"{number} {slug}" for number, slug in enumerate(ADVERSARIES, 1)))


def _lines(text: str) -> list[str]:
    return wrap(text, 100, break_on_hyphens=False)


def matrix(words: Words) -> Iterator[str]:
    yield "| strategy | " + " | ".join(str(number) for number in range(1, len(ADVERSARIES) + 1)) + " |"
    yield "|---|" + "---|" * len(ADVERSARIES)
    for strategy in STRATEGIES:
        cells = [letter(words, strategy, hazard) for hazard in ADVERSARIES]
        yield f"| `{strategy}` | " + " | ".join(cells) + " |"


def summary(words: Words) -> Iterator[str]:
    """Yield for each hazard how many of each kind survived it, of those it touches. Strategies that always lose are
    left out."""
    sound = {each: group_of(each) for each in STRATEGIES if claims(find(each).withstands)}
    yield "| hazard | " + " | ".join(GROUPS) + " |"
    yield "|---|" + "---|" * len(GROUPS)
    for hazard in ADVERSARIES:
        kinds = ([words.get(f"{s} {hazard}") for s, of in sound.items() if of == group] for group in GROUPS)
        yield f"| {hazard} | " + " | ".join(map(counted, kinds)) + " |"


def counted(found: Sequence[str | None]) -> str:
    """Return how many kept the balance, of those that were touched."""
    touched = [word for word in found if word not in (None, Word.NOT_RUN)]
    counted = f"{sum(word == Word.KEPT for word in touched)} of {len(touched)}" if touched else ""
    missing = found.count(None)
    if missing:
        return f"{counted}, {missing} {measured.NOT_MEASURED}" if counted else measured.NOT_MEASURED
    return counted or "·"


def complaints(page: str, runs: measured.Runs) -> list[str]:
    """Return what is wrong: the page is stale, or a claim contradicts its evidence. [] if all is well."""
    known, words = wanted(), measured.everything(runs)
    told = [f"{key}: no such strategy or hazard" for key in words if key not in known]
    told += [
        f"{strategy} × {hazard}: {_contradiction(strategy, hazard, words[key])}"
        for key, (strategy, hazard) in known.items()
        if key in words and agrees(claimed_now(strategy, hazard), Word(words[key])) is False
    ]
    if not told and measured.placed(page, BEGIN, END, section(runs)) != page:
        told.append("it is stale: run `python manage.py fault_matrix`")
    return told


def _contradiction(strategy: str, hazard: str, word: str) -> str:
    claim = "claims" if claimed_now(strategy, hazard) else "does not claim"
    return f"{claim} to withstand it, and came to {word}"
