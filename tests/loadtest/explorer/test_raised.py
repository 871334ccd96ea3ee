"""A lock that ends with an error of its own, and does not say that it gives up so: shown with where it was raised."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from loadtest.explorer.lanes import Lanes
from loadtest.findings.finding import finding
from loadtest.findings.job import Job
from loadtest.report.explorer_table import remarks
from loadtest.verdict.words import Word


class Taken(Exception):
    """Unknown to the explorer."""


@contextmanager
def asks_once(name: str, *, redis: Any) -> Iterator[None]:
    """Its release deletes the key without looking whose it is, so a pause loses money."""
    if not redis.set(name, 1, nx=True, px=5000):
        raise Taken("somebody else has it")
    yield
    redis.delete(name)


@pytest.mark.deep(short=False)
@pytest.mark.usefixtures("committed_db")
def test_what_it_raised_is_shown_beside_a_loss() -> None:
    with Lanes(1) as lanes:
        ((_, answer),) = lanes.explore([Job(strategy=f"{__name__}:asks_once", until="exhausted")])
    found = finding(answer["result"], Word.LOST)
    assert (found["verdict"], found["under"]["contention"]) == ("lost", "inconclusive")
    example = found["counterexamples"]["contention"]
    assert "asks_once" in example["trace"]
    assert example["trace"].endswith("Taken: somebody else has it")
    told = "\n".join(remarks([found]))
    assert f"under contention: {example['sentences'][-1]}; again: " in told
    assert f"{example['id']}. Remedy: mend what raises it" in told
    assert told.count("    Taken: somebody else has it") == 1
