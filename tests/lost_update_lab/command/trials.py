"""A scenario and locks as a user has them in a module of their own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lost_update_lab.scenarios.race import Race
from tests.lost_update_lab.scenarios.shop import one_voucher, redeem, redeem_locked


def voucher(race: Race) -> None:
    race.setup(one_voucher)
    race.worker("Ann", redeem, "XMAS", customer=1)
    race.worker("Bob", redeem, "XMAS", customer=2)


def voucher_locked(race: Race) -> None:
    race.setup(one_voucher)
    race.worker("Ann", redeem_locked, "XMAS", customer=1)
    race.worker("Bob", redeem_locked, "XMAS", customer=2)
    race.explore(crashes=1)


@contextmanager
def get_then_set(name: str, *, redis: Any) -> Iterator[None]:
    while redis.get(name):
        time.sleep(1)
    redis.set(name, 1)
    yield
    redis.delete(name)


@contextmanager
def advisory(name: str, *, sql: Any) -> Iterator[None]:
    sql.execute("SELECT pg_advisory_lock(hashtext(%s))", [name])
    yield
    sql.execute("SELECT pg_advisory_unlock(hashtext(%s))", [name])


def leased(name: str, *, redis: Any) -> Any:
    return redis.lock(name, timeout=5, sleep=1)


def no_lock(redis: Any) -> None: ...
