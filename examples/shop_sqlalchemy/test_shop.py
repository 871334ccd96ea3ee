"""The last seat, and two customers who want it."""

from contextlib import nullcontext

import pytest
from fastapi.testclient import TestClient
from shop import (
    SoldOut,
    app,
    buy,
    buy_conditionally,
    buy_endpoint,
    buy_locked,
    buy_versioned,
    one_seat,
    tickets,
)
from sqlalchemy.orm.exc import StaleDataError

from lost_update_lab.invariants import succeeded
from lost_update_lab.scenarios.race import NotKept


def two_customers(race, operation, *args):
    race.setup(one_seat)
    race.worker("Ann", operation, "Ann", *args)
    race.worker("Bob", operation, "Bob", *args)
    race.invariant(lambda: tickets() <= 1, "the last seat was sold twice")


def test_the_last_seat_is_sold_twice(race):
    two_customers(race, buy)
    with pytest.raises(NotKept, match="the last seat was sold twice"):
        race.explore()


@pytest.mark.parametrize("operation", [buy_locked, buy_versioned, buy_conditionally])
def test_the_last_seat_is_sold_once(race, operation):
    two_customers(race, operation)
    assert race.explore(crashes=1).exhausted


def test_a_stale_version_is_an_answer(race):
    race.setup(one_seat)
    race.worker("Ann", buy_versioned, "Ann")
    race.worker("Bob", buy_versioned, "Bob")
    race.explore(refusals=[StaleDataError])  # no invariant: the outcome is that of a serial order


def test_exactly_one_gets_it(race):
    two_customers(race, buy_locked)
    race.invariant(lambda a, b: succeeded(a) + succeeded(b) == 1, "not exactly one got the seat")
    race.invariant(
        lambda a, b: isinstance(a, SoldOut) or isinstance(b, SoldOut), "nobody was told that it is sold"
    )
    race.explore()


def test_an_endpoint_is_a_function(race):
    two_customers(race, buy_endpoint, True)
    race.explore()


def post(customer, locked):
    return TestClient(app).post(f"/buy/{customer}", params={"locked": locked}).status_code


@pytest.mark.parametrize("locked", [False, True])
def test_a_request(race, locked):
    """The whole way: FastAPI calls the endpoint in a thread of its own."""
    two_customers(race, post, locked)
    race.invariant(lambda a, b: sorted([a, b]) == [200, 409], "not exactly one was told that it is sold")
    with nullcontext() if locked else pytest.raises(NotKept, match="the last seat was sold twice"):
        race.explore()
