"""A lane's process: when the budget of its first job begins."""

from __future__ import annotations

from multiprocessing.connection import wait
from time import monotonic
from typing import Any

import pytest

from loadtest.explorer.lanes import STARTS_WITHIN, Lanes, _margin
from loadtest.findings.job import Job

BUDGET = 60.0


@pytest.mark.deep
def test_a_budget_begins_when_the_lane_is_ready(django_db_blocker: Any) -> None:
    """Its start was part of the budget. On a slow machine a lane with a MariaDB to migrate was given up before it had
    begun, and so was each one that replaced it."""
    with django_db_blocker.unblock(), Lanes(1) as lanes:
        [lane] = lanes._lanes
        begun = monotonic()
        lane.begin(Job(strategy="no-lock", budget=BUDGET))
        assert lane.until >= begun + STARTS_WITHIN
        assert wait([lane.pipe], STARTS_WITHIN)
        assert lane.became_ready()
        assert lane.until < monotonic() + BUDGET + _margin(BUDGET) + 1
        assert wait([lane.pipe], BUDGET)
        assert not lane.became_ready()
        assert lane.answer()["result"].exhausted
