"""Without an invariant: a time or key that is computed from constants counts, and one that a run makes does not."""

from __future__ import annotations

import hashlib
import json
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from lost_update_lab import Result
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.under_test.operations import VIOLATED

Trial = Callable[..., Result]
MONTH = timedelta(days=30)


def subscription(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS subscription")
    sql.execute("CREATE TABLE subscription (paid_until timestamptz, at timestamptz, digest text, head uuid)")
    sql.execute("INSERT INTO subscription VALUES ('2027-01-01', NULL, '', %s)", [uuid.UUID(int=1)])


def extends(lock: str, sql: Any) -> None:
    with sql.transaction():
        (until,) = sql.execute(f"SELECT paid_until FROM subscription {lock}").fetchone()
        sql.execute("UPDATE subscription SET paid_until = %s, at = %s", [until + MONTH, datetime.now(UTC)])


def says_until_when(lock: str, sql: Any) -> str:
    """The answer shows it in a text, and the row holds the digest of a text, which looks like a random key."""
    with sql.transaction():
        until, digest = sql.execute(f"SELECT paid_until, digest FROM subscription {lock}").fetchone()
        digest = hashlib.md5(f"{digest} and a month".encode()).hexdigest()
        sql.execute("UPDATE subscription SET paid_until = %s, digest = %s", [until + MONTH, digest])
    return f"paid until {until + MONTH}, asked at {datetime.now(UTC)} by {uuid.uuid4()}"


def adds_a_link(lock: str, sql: Any) -> None:
    with sql.transaction():
        (head,) = sql.execute(f"SELECT head FROM subscription {lock}").fetchone()
        sql.execute("UPDATE subscription SET head = %s", [uuid.uuid5(head, "link")])


@pytest.mark.deep_after(3)
@pytest.mark.parametrize(("lock", "right"), [("", VIOLATED), ("FOR UPDATE", KEPT)])
@pytest.mark.parametrize("operation", [extends, says_until_when, adds_a_link])
def test_what_is_computed_from_constants_is_a_constant(
    trial: Trial, operation: Callable[..., Any], lock: str, right: str
) -> None:
    """Each time and each key that was not among the opening rows counted as made by the run: two months were paid, and
    one was given."""
    assert trial([(operation, lock)] * 2, setup=subscription, control=False).verdict == right


def empty_cart(redis: Any) -> None:
    redis.set("cart", "[]", ex=3600)


def adds(item: str, atomic: bool, redis: Any) -> None:
    """A cart in a cache, which gives a lease to each key."""
    if atomic:
        redis.rpush(f"cart of {item}", item)
    else:
        found = json.loads(redis.get("cart") or "[]")
        redis.set("cart", json.dumps(sorted([*found, item])), ex=3600)


@pytest.mark.parametrize(("atomic", "right"), [(False, VIOLATED), (True, KEPT)])
def test_the_value_of_a_key_with_a_lease_counts(trial: Trial, atomic: bool, right: str) -> None:
    """It was no part of an outcome at all."""
    workers = [(adds, item, atomic) for item in ("a pen", "ink")]
    assert trial(workers, setup=empty_cart, control=False).verdict == right


def takes_stock(redis: Any) -> None:
    redis.set("stock", 10)


def leaves_times_and_tokens(redis: Any) -> float:
    redis.decr("stock")
    time.sleep(1)
    redis.set("last", datetime.now(UTC).isoformat())
    redis.zadd("seen", {"somebody": time.time()})
    redis.hset("call", "at", time.time_ns())
    redis.set("session", str(uuid.uuid4()), ex=3600)
    return time.time()


@pytest.mark.deep
def test_times_that_a_run_makes_do_not_count_in_redis_either(trial: Trial) -> None:
    """A right operation was accused: its keys and its answer held the time."""
    assert trial([leaves_times_and_tokens] * 2, setup=takes_stock, control=False).verdict == KEPT


def orders(kind: str, default: str, sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS item, orders")
    sql.execute(f"CREATE TABLE orders (id {kind} PRIMARY KEY {default}, number serial, status text)")
    refers = "uuid" if kind == "uuid" else "int"
    sql.execute(f"CREATE TABLE item (id serial PRIMARY KEY, of {refers} REFERENCES orders, who text)")


def buys(who: str, newest: bool, sql: Any) -> None:
    (made,) = sql.execute("INSERT INTO orders (status) VALUES ('new') RETURNING id").fetchone()
    if newest:
        (made,) = sql.execute("SELECT id FROM orders ORDER BY number DESC LIMIT 1").fetchone()
    sql.execute("INSERT INTO item (of, who) VALUES (%s, %s)", [made, who])


@pytest.mark.deep_after(2)
@pytest.mark.parametrize(("newest", "right"), [(True, VIOLATED), (False, KEPT)])
@pytest.mark.parametrize(
    "key",
    [
        pytest.param(("serial", ""), id="serial"),
        pytest.param(("uuid", "DEFAULT gen_random_uuid()"), id="uuid", marks=pytest.mark.answers_change),
    ],
)
def test_two_items_of_one_order_are_not_one_of_each(
    trial: Trial, key: tuple[str, str], newest: bool, right: str
) -> None:
    """New rows were told apart by what they refer to, and not by what refers to them. Where the database draws the
    keys, states were not told apart either."""
    workers = [(buys, who, newest) for who in ("Ann", "Bob")]
    assert trial(workers, setup=partial(orders, *key), control=False).verdict == right
