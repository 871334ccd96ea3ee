"""Locks as Hypothesis writes them: a few commands to take one, a few to give it back, and perhaps a path that forgets.

Most of them are wrong. What they have in common is that each search of one comes to its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import psycopg
from hypothesis import strategies as st
from redis import WatchError

from tests.lost_update_lab.bank import Bank, GaveUp

KEY, NUMBER = "lock", 7
COMPARE_AND_DELETE = "return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0"


def elsewhere(bank: Bank) -> psycopg.Connection[Any]:
    """Another connection of this worker, as a pool may give it out."""
    if not hasattr(bank.own, "elsewhere") or bank.own.elsewhere.closed:
        bank.own.elsewhere = psycopg.connect(bank.database, autocommit=True)
    found: psycopg.Connection[Any] = bank.own.elsewhere
    return found


def _asked(sql: psycopg.Connection[Any], function: str) -> bool:
    row = sql.execute(f"SELECT {function}({NUMBER})").fetchone()
    return row is not None and row[0] is not False  # a function that waits answers void


def _get_then_set(bank: Bank, own: str) -> bool:
    return not bank.redis.get(KEY) and bool(bank.redis.set(KEY, own, ex=5))


def _setnx_then_expire(bank: Bank, own: str) -> bool:
    return bool(bank.redis.setnx(KEY, own)) and bool(bank.redis.expire(KEY, 5))


Act = Callable[[Bank, str], Any]
#: one try to get in; says whether it is in
TAKE: dict[str, Act] = {
    "SETNX": lambda bank, own: bank.redis.setnx(KEY, own),
    "GETSET": lambda bank, own: bank.redis.getset(KEY, own) is None,
    "SET NX PX 5000": lambda bank, own: bank.redis.set(KEY, own, nx=True, px=5000),
    "GET, then SET EX 5": _get_then_set,
    "SETNX, then EXPIRE 5": _setnx_then_expire,
    "pg_try_advisory_lock": lambda bank, own: _asked(bank.sql, "pg_try_advisory_lock"),
    "pg_advisory_lock": lambda bank, own: _asked(bank.sql, "pg_advisory_lock"),
    "pg_advisory_lock elsewhere": lambda bank, own: _asked(elsewhere(bank), "pg_advisory_lock"),
}


def _get_then_delete(bank: Bank, own: str) -> None:
    if bank.redis.get(KEY) == own.encode():
        bank.redis.delete(KEY)


def _watch_then_delete(bank: Bank, own: str) -> None:
    with bank.redis.pipeline() as pipe, suppress(WatchError):
        pipe.watch(KEY)
        if pipe.get(KEY) == own.encode():
            pipe.multi()
            pipe.delete(KEY)
            pipe.execute()


GIVE_BACK: dict[str, Act] = {
    "DEL": lambda bank, own: bank.redis.delete(KEY),
    "GET, compare, DEL": _get_then_delete,
    "WATCH, GET, compare, MULTI, DEL, EXEC": _watch_then_delete,
    "compare and delete": lambda bank, own: bank.redis.eval(COMPARE_AND_DELETE, 1, KEY, own),
    "EXPIRE 60": lambda bank, own: bank.redis.expire(KEY, 60),
    "SET KEEPTTL": lambda bank, own: bank.redis.set(KEY, "", keepttl=True),
    "pg_advisory_unlock": lambda bank, own: _asked(bank.sql, "pg_advisory_unlock"),
    "pg_advisory_unlock elsewhere": lambda bank, own: _asked(elsewhere(bank), "pg_advisory_unlock"),
}


class Forgets(StrEnum):
    """On which path the lock is not given back."""

    NEVER = "never"
    WAITED = "after it has waited"
    SECOND = "where the money has changed"


class Tries(StrEnum):
    """What a waiter does after its second try."""

    ON = "tries on"
    UP = "gives up"
    IN = "goes in"


@dataclass(frozen=True)
class Made:
    """`work`: seconds inside the lock."""

    take: str
    give_back: tuple[str, ...]
    forgets: Forgets = Forgets.NEVER
    tries: Tries = Tries.ON
    work: float = 0.0

    def _waits(self, bank: Bank, own: str) -> bool:
        """Take it. Returns whether that needed a second try."""
        tried = 0
        while not TAKE[self.take](bank, own):
            tried += 1
            if tried == 2 and self.tries is Tries.UP:
                raise GaveUp
            if tried == 2 and self.tries is Tries.IN:
                break
            time.sleep(1)
        return tried > 0

    def deposit(self, bank: Bank, amount: int) -> str:
        own = f"owner {amount}"
        waited = self._waits(bank, own)
        balance = bank.read()
        if self.work:
            time.sleep(self.work)
        bank.write(balance + amount)
        if not (self.forgets is Forgets.WAITED and waited) and not (
            self.forgets is Forgets.SECOND and balance != 100
        ):
            for each in self.give_back:
                GIVE_BACK[each](bank, own)
        return "ok"


def locks() -> st.SearchStrategy[Made]:
    return st.builds(
        Made,
        st.sampled_from(list(TAKE)),
        st.lists(st.sampled_from(list(GIVE_BACK)), max_size=2, unique=True).map(tuple),
        st.sampled_from(Forgets),
        st.sampled_from(Tries),
        st.sampled_from([0.0, 6.0]),
    )
