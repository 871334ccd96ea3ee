"""Small cases that every explorer of schedules should judge correctly. It imports nothing of this project, so the same
file runs in the environment of a peer.

Each case is a deposit by one worker: read, add, write, with some protection around it. `right` is the true answer:
deposits of 10 and 20 on 100 make 130 in every order ("kept"), or not in some order ("lost").
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: the deposit hidden in a SQL function
DEPOSIT = """
CREATE OR REPLACE FUNCTION deposit(change int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE was int;
BEGIN
    SELECT balance INTO was FROM account WHERE id = 1 FOR UPDATE;
    UPDATE account SET balance = was + change WHERE id = 1;
END $$;
"""
SCHEMA = """
DROP TABLE IF EXISTS account;
CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL);
INSERT INTO account VALUES (1, 100);
"""
RESET = "UPDATE account SET balance = 100 WHERE id = 1"
READ = "SELECT balance FROM account WHERE id = 1"
WRITE = "UPDATE account SET balance = %s WHERE id = 1"
OPENING = 100
RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


@dataclass(frozen=True)
class SearchCase:
    name: str
    right: str
    deposit: Callable[[Any, Any, int], None]
    #: one worker for each amount, which deposits it this many `times`
    amounts: tuple[int, ...] = (10, 20)
    times: int = 1

    def work(self, sql: Any, redis: Any, worker: int) -> None:
        for _ in range(self.times):
            self.deposit(sql, redis, self.amounts[worker])

    @property
    def expected(self) -> int:
        return OPENING + self.times * sum(self.amounts)


def _add(sql: Any, amount: int, query: str = READ) -> None:
    balance = sql.execute(query).fetchone()[0]
    sql.execute(WRITE, [balance + amount])


def no_lock(sql: Any, redis: Any, amount: int) -> None:
    _add(sql, amount)


def for_update(sql: Any, redis: Any, amount: int) -> None:
    with sql.transaction():
        _add(sql, amount, READ + " FOR UPDATE")


def for_update_late(sql: Any, redis: Any, amount: int) -> None:
    with sql.transaction():
        balance = sql.execute(READ).fetchone()[0]
        sql.execute(READ + " FOR UPDATE")
        sql.execute(WRITE, [balance + amount])


def hidden_for_update(sql: Any, redis: Any, amount: int) -> None:
    with sql.transaction():
        sql.execute("SELECT deposit(%s)", [amount])


def _leased(redis: Any, amount: int, work: Callable[[], None]) -> None:
    while not redis.set("lock", amount, nx=True, px=30_000):
        time.sleep(5)
    work()
    redis.eval(RELEASE, 1, "lock", amount)


def lease_that_fits(sql: Any, redis: Any, amount: int) -> None:
    _leased(redis, amount, lambda: _add(sql, amount))


def lease_overrun(sql: Any, redis: Any, amount: int) -> None:
    def work() -> None:
        balance = sql.execute(READ).fetchone()[0]
        time.sleep(60)
        sql.execute(WRITE, [balance + amount])

    _leased(redis, amount, work)


CASES = {
    each.name: each
    for each in (
        SearchCase("no lock", "lost", no_lock),
        SearchCase("FOR UPDATE", "kept", for_update),
        SearchCase("FOR UPDATE after the read", "lost", for_update_late),
        SearchCase("FOR UPDATE inside a function", "kept", hidden_for_update),
        SearchCase("lease of 30 s, no work", "kept", lease_that_fits),
        SearchCase("lease of 30 s, 60 s of work", "lost", lease_overrun),
        SearchCase("no lock, two deposits each", "lost", no_lock, times=2),
        SearchCase("no lock, three deposits each", "lost", no_lock, times=3),
        SearchCase("no lock, three workers", "lost", no_lock, (10, 20, 30)),
        SearchCase("no lock, four workers", "lost", no_lock, (10, 20, 30, 40)),
        SearchCase("lease of 30 s, two deposits each", "kept", lease_that_fits, times=2),
    )
}
