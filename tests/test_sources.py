"""docs/sources.md: each row has a number and a place; each strategy and lock names a row or says that it is ours."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from ledger.addresses import BASE_DIR
from ledger.strategies import STRATEGIES
from locks import LOCKS

PAGE = BASE_DIR / "docs" / "sources.md"
ROW = re.compile(r"^\| ([A-F]\d+) \|(.*)\|$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#]+)")
NUMBER = re.compile(r"\b[A-F]\d+\b")
SUBJECTS = {**STRATEGIES, **LOCKS}


def rows(page: str) -> dict[str, str]:
    """The text of each row, by its number."""
    return dict(ROW.findall(page))


def unknown(source: str, known: dict[str, str]) -> Iterator[str]:
    """What is wrong with this `source` of a strategy or a lock."""
    named = NUMBER.findall(source)
    if not named and "ours" not in source:
        yield f"{source!r} names no row of docs/sources.md, and does not say `ours`"
    yield from (f"{source!r} names {row}, which docs/sources.md lacks" for row in named if row not in known)


def test_rows_are_numbered_without_a_gap() -> None:
    numbers = [number for number, _ in ROW.findall(PAGE.read_text())]
    for letter in "ABCDEF":
        mine = [int(number[1:]) for number in numbers if number[0] == letter]
        assert mine == list(range(1, len(mine) + 1)), letter
        assert mine, letter


def test_each_row_has_a_place_that_exists() -> None:
    for number, row in rows(PAGE.read_text()).items():
        places = [place for place in LINK.findall(row) if "://" not in place]
        assert places or "this page" in row, f"{number} names no file"
        missing = [place for place in places if not (PAGE.parent / place).exists()]
        assert not missing, f"{number}: {missing}"


@pytest.mark.parametrize("slug", SUBJECTS)
def test_a_strategy_or_a_lock_names_its_source(slug: str) -> None:
    assert not list(unknown(SUBJECTS[slug].source, rows(PAGE.read_text())))


def test_a_wrong_source_is_seen() -> None:
    assert list(unknown("an article", {}))
    assert list(unknown("A99: the hot-account article", rows(PAGE.read_text())))
    assert not list(unknown("A1", {"A1": ""}))
