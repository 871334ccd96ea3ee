"""Two workers of a queue: each job is paid out once."""

import pytest
from jobs import one_job, work_blindly, work_skipping_locked

from lost_update_lab.invariants import unique
from lost_update_lab.scenarios.race import NotKept


def two_workers(race, work):
    race.setup(one_job)
    race.worker("Ann", work, "Ann")
    race.worker("Bob", work, "Bob")
    race.invariant(unique("payout", "job"), "a job was paid out twice")


def test_two_workers_take_the_same_job(race):
    two_workers(race, work_blindly)
    with pytest.raises(NotKept, match="a job was paid out twice") as broken:
        race.explore()
    assert "jobs.py:32  connection.execute(" in str(broken.value)


def test_who_comes_second_skips_what_is_locked(race):
    two_workers(race, work_skipping_locked)
    assert race.explore(crashes=1).exhausted
