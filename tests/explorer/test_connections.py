"""Explorations one after the other in one process leave no connection behind."""

from __future__ import annotations

import psycopg

from loadtest.exploration.job import Job
from loadtest.exploration.lanes import Lanes
from tests.locks.actor import eventually

HELD = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
OWN = 3  # this test's, and the lane's own; each lost reply of a job costs one more


def test_a_lane_keeps_no_connection_of_the_job_before() -> None:
    """Some twenty jobs were enough to take all the places that the server has."""
    jobs = [Job(strategy=slug, budget=60.0) for slug in ("no-lock", "atomic-update", "no-lock")]
    with Lanes(1) as lanes, psycopg.connect(lanes._lanes[0].environment["DATABASE_URL"]) as sql:
        sql.autocommit = True
        for _, answer in lanes.explore(jobs):
            assert "error" not in answer, answer["error"]
            # a session ends when its process does
            eventually(lambda: sql.execute(HELD).fetchall()[0][0] <= OWN, f"{OWN} connections")
