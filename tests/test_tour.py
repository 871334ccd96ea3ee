"""The tour's chapters, run line by line on the real servers."""

from __future__ import annotations

import doctest
from itertools import pairwise
from pathlib import Path

import pytest

TOUR = Path(__file__).resolve().parent.parent / "docs" / "tour"
CHAPTERS = sorted(TOUR.glob("[0-9]*.md"))


@pytest.mark.usefixtures("committed_db", "redis_client")
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_chapter(chapter: Path) -> None:
    done = doctest.testfile(str(chapter), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert done.attempted > 0
    assert done.failed == 0


def test_a_wrong_chapter_fails(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.md"
    wrong.write_text(">>> 100 + 10 + 20\n120\n")
    assert doctest.testfile(str(wrong), module_relative=False, report=False, verbose=False).failed == 1


def test_each_chapter_is_in_the_list_and_leads_to_the_next() -> None:
    index = (TOUR / "README.md").read_text()
    assert [path.name for path in CHAPTERS if f"({path.name})" not in index] == []
    for chapter, following in pairwise(CHAPTERS):
        assert f"({following.name})" in chapter.read_text()
