"""An account in PostgreSQL and two deposits on it, for packages that are locks."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from lost_update_lab.under_test.scenario import worker
from museum.packages.package import PackageTrial


def opened() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute("CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL)")
        connection.execute("INSERT INTO account VALUES (1, 100)")


def deposits(lock: Callable[[Any], Any]) -> Sequence[PackageTrial]:
    """Without a fault, with a crash, with a pause."""

    def deposit(amount: int, sql: Any, redis: Any) -> None:
        with lock(redis):
            balance = sql.execute("SELECT balance FROM account WHERE id = 1").fetchone()[0]
            sql.execute("UPDATE account SET balance = %s WHERE id = 1", [balance + amount])

    workers = [worker("Ann", deposit, 10), worker("Bob", deposit, 20)]
    return [
        PackageTrial(name="no fault", workers=workers, setup=opened),
        PackageTrial(name="a crash", workers=workers, setup=opened, faults={"crashes": 1}),
        PackageTrial(name="a pause", workers=workers, setup=opened, faults={"pauses": 1}),
    ]
