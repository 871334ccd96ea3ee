"""Money in the books that no worker was asked to post: nothing is kept there, though every sum is right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ledger.strategies import CONTROL
from loadtest.explorer.lanes import Lanes
from loadtest.findings.job import Job
from loadtest.verdict.words import Word


@contextmanager
def posts_beside(name: str, *, redis: Any) -> Iterator[None]:
    """A lock that makes a posting of its own: with a key, an entry and its place on the chain."""
    from ledger.models import Book
    from ledger.posting import Line, Posting
    from ledger.strategies import find

    yield
    find(CONTROL)(Book.objects.get()).apply(Posting("nobody asked", (Line("A0001", 5),)))


@contextmanager
def posts_nothing(name: str, *, redis: Any) -> Iterator[None]:
    yield


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize(
    ("lock", "words"),
    [("posts_beside", {str(Word.INCONCLUSIVE): 1}), ("posts_nothing", {"unbroken": 1})],
)
def test_an_entry_that_nobody_asked_for_is_no_proof(lock: str, words: dict[str, int]) -> None:
    job = Job(strategy=f"{__name__}:{lock}", workers=1, faults=0)
    with Lanes(1) as lanes:
        ((_, answer),) = lanes.explore([job])
    assert "error" not in answer, answer
    result = answer["result"]
    assert (dict(result.words), result.acknowledged) == (words, 1)
    if lock == "posts_beside":
        assert result.came_to[""] == (
            "inconclusive",
            "1 entry is in the books that no client asked for",
        )
