"""A single call that lets no other thread run ends with the budget, and is told with its place."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from loadtest.explorer import pulse
from loadtest.explorer.lanes import Lanes
from loadtest.findings.job import Job


@contextmanager
def counts(name: str, redis: Any) -> Iterator[None]:
    sum(itertools.repeat(1, 10**12))
    yield


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
def test_a_call_that_lets_no_other_thread_run_is_ended() -> None:
    """There was no answer, and no trace, until 40 s after the budget."""
    with Lanes(1) as lanes:
        [(_, answer)] = lanes.explore([Job(strategy=f"{__name__}:counts", faults=0, budget=2.0)])
    assert "lets no other thread run (test_pulse.py, line " in answer["error"]
    assert "in counts" in answer["trace"]
    assert answer["remedy"] == pulse.REMEDY
