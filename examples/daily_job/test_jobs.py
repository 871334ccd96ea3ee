"""Two nodes of a cluster, and again the first one: the next run finds what a crash has left."""

import pytest
from jobs import one_day, received, record_first, send_first, send_first_with_key

from lost_update_lab.scenarios.race import NotKept


def two_nodes(race, job):
    race.setup(one_day)
    race.worker("A", job)
    race.worker("B", job)


def at_most_once(race):
    race.invariant(lambda: received() <= 1, "the other system got it twice")


def test_record_first_sends_at_most_once(race):
    two_nodes(race, record_first)
    at_most_once(race)
    assert race.explore(crashes=1).exhausted


def test_record_first_may_never_send(race):
    two_nodes(race, record_first)
    race.invariant(lambda: received() >= 1, "the other system never got it")
    with pytest.raises(NotKept, match="never got it"):
        race.explore(crashes=1)


def test_send_first_may_send_twice(race):
    two_nodes(race, send_first)
    at_most_once(race)
    with pytest.raises(NotKept, match="got it twice"):
        race.explore(crashes=1)


def test_send_first_with_a_key_arrives_once(race):
    two_nodes(race, send_first_with_key)
    race.invariant(lambda: received() == 1, "the other system did not get it once")
    assert race.explore(crashes=1).exhausted
