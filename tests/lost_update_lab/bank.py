"""A tiny bank for the explorer's own tests: one account in PostgreSQL, workers that add to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from loadtest.bench.explorer.system import AccountSystem
from locks import LockLost
from lost_update_lab.model.system import UNBROKEN, Ending, Judgement

SCHEMA = """
DROP TABLE IF EXISTS account;
CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL, version int NOT NULL);
INSERT INTO account VALUES (1, 100, 0), (2, 100, 0);
"""
CONTENTS = "SELECT id, balance, version FROM account ORDER BY id"
RESET = "UPDATE account SET balance = 100, version = 0"
OPENING = 100


class GaveUp(Exception):
    """A worker did not get the lock in time."""


class Bank(AccountSystem):
    """Worker i adds 10 · (i + 1). `deposit(bank, amount)` is the code under test."""

    schema, opening = SCHEMA, RESET

    def __init__(self, deposit: Callable[[Bank, int], Any], database: str, redis_url: str) -> None:
        super().__init__(deposit.__name__, database, redis_url)
        self.deposit = deposit

    def work(self, index: int) -> Any:
        return self.deposit(self, 10 * (index + 1))

    def judge(self, endings: Sequence[Ending], stuck: bool, contents: Mapping[str, bytes]) -> Judgement:
        balance = self.admin.execute("SELECT balance FROM account WHERE id = 1").fetchone()[0]
        amounts = {e.worker: 10 * (ord(e.worker) - 64) for e in endings}
        done = sum(amounts[e.worker] for e in endings if e.result == "ok")
        maybe = {0}
        for e in endings:  # crashed, still waiting, or without an answer: on the account or not
            if e.result != "ok" and not isinstance(e.error, GaveUp):
                maybe |= {m + amounts[e.worker] for m in maybe}
        if balance - OPENING - done not in maybe:
            return Judgement("lost", (f"{OPENING} + {done} became {balance}",))
        if stuck or any(isinstance(e.error, GaveUp | psycopg.errors.DeadlockDetected) for e in endings):
            return Judgement("stalled", ("nobody could go on",))
        return Judgement(UNBROKEN)

    def show(self) -> dict[str, str]:
        return {"balance": str(self.admin.execute(CONTENTS).fetchall())}

    # -- what deposits are made of --------------------------------------------------------------------------------

    def read(self) -> int:
        return self.sql.execute("SELECT balance FROM account WHERE id = 1").fetchone()[0]

    def write(self, balance: int) -> None:
        self.sql.execute("UPDATE account SET balance = %s WHERE id = 1", [balance])


def add(bank: Bank, amount: int, work: float = 0) -> str:
    """Read, compute, write, with nothing around it."""
    balance = bank.read()
    if work:
        time.sleep(work)
    bank.write(balance + amount)
    return "ok"


def no_lock(bank: Bank, amount: int) -> str:
    return add(bank, amount)


def select_for_update(bank: Bank, amount: int) -> str:
    with bank.sql.transaction():
        balance = bank.sql.execute("SELECT balance FROM account WHERE id = 1 FOR UPDATE").fetchone()[0]
        bank.write(balance + amount)
    return "ok"


def select_for_update_late(bank: Bank, amount: int) -> str:
    """Reads before it locks."""
    with bank.sql.transaction():
        balance = bank.read()
        bank.sql.execute("SELECT balance FROM account WHERE id = 1 FOR UPDATE")
        bank.write(balance + amount)
    return "ok"


def hidden_for_update(bank: Bank, amount: int) -> str:
    """The same inside a SQL function: its text says nothing of a lock."""
    with bank.sql.transaction():
        bank.sql.execute("SELECT deposit(%s)", [amount])
        bank.sql.execute("SELECT 1")
    return "ok"


def optimistic(bank: Bank, amount: int) -> str:
    for _ in range(5):
        row = bank.sql.execute("SELECT balance, version FROM account WHERE id = 1").fetchone()
        done = bank.sql.execute(
            "UPDATE account SET balance = %s, version = version + 1 WHERE id = 1 AND version = %s",
            [row[0] + amount, row[1]],
        )
        if done.rowcount:
            return "ok"
    raise GaveUp


def opposite_order(bank: Bank, amount: int) -> str:
    """Each locks the two accounts in another order."""
    with bank.sql.transaction():
        for number in (1, 2) if amount == 10 else (2, 1):
            bank.sql.execute("UPDATE account SET balance = balance + %s WHERE id = %s", [amount, number])
    return "ok"


def locked_by(lock: Callable[[Bank], Any], work: float = 0) -> Callable[[Bank, int], str]:
    """The unprotected deposit under a lock: `lock(bank)` gives a context manager."""

    def deposit(bank: Bank, amount: int) -> str:
        held = lock(bank)
        held.__enter__()
        try:
            return add(bank, amount, work)
        finally:
            with suppress(LockLost):  # too late for the money: the deposit is acknowledged all the same
                held.__exit__(None, None, None)

    deposit.__name__ = lock.__name__
    return deposit


def three_tries(poll: float) -> Callable[[Bank], Any]:
    return tries(3, poll)


def tries(times: int, poll: float) -> Callable[[Bank], Any]:
    """A lock that tries so often, `poll` seconds apart, and then goes in without the lock."""

    @contextmanager
    def lock(bank: Bank) -> Iterator[None]:
        for _ in range(times):
            if bank.redis.setnx("lock", 1):
                break
            time.sleep(poll)
        yield
        bank.redis.delete("lock")

    return lock
