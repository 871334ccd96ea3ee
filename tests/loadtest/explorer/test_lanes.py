"""A lane's process: when the budget of its first job begins."""

from __future__ import annotations

from contextlib import closing
from multiprocessing.connection import wait
from time import monotonic
from typing import Any

import pytest
import redis

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


@pytest.mark.deep
def test_a_server_that_a_lock_keeps_busy_for_ever_is_begun_anew(django_db_blocker: Any) -> None:
    """The next job had a traceback of it, and its last words at the end, where it did not stop, stood in the place of
    all results."""
    with django_db_blocker.unblock(), Lanes(1) as lanes:
        [lane] = lanes._lanes
        _keep_busy(lane.environment["REDIS_URL"])
        lane.end()
        lane._start_anew()
        with closing(redis.Redis.from_url(lane.environment["REDIS_URL"])) as client:
            assert client.ping()
        _keep_busy(lane.environment["REDIS_URL"])


def _keep_busy(url: str) -> None:
    with closing(redis.Redis.from_url(url, socket_timeout=0.1)) as client, pytest.raises(redis.TimeoutError):
        client.eval("while true do end", 0)
