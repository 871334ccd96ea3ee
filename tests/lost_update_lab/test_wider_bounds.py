"""A wider bound finds more, never less: what is found with K faults is found with K + 1 too, under the same hazard.

A session lock that was never given back was `stalled` without faults and `kept` with one: where nobody could go on, and
a fault might still have come, the schedule in which none comes was not judged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest

from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.runs.found import SearchResult
from tests.lost_update_lab.bank import Bank, GaveUp, locked_by

Explore = Callable[..., SearchResult]


def session_lock(bank: Bank) -> None:
    bank.sql.execute("SELECT pg_advisory_lock(7)")


def session_lock_or_not(bank: Bank) -> None:
    for _ in range(2):
        if bank.sql.execute("SELECT pg_try_advisory_lock(7)").fetchone()[0]:
            return
        time.sleep(1)
    raise GaveUp


def key_without_lease(bank: Bank) -> None:
    while not bank.redis.setnx("lock", "x"):
        time.sleep(1)


def key_with_a_lease(bank: Bank) -> None:
    while not bank.redis.set("lock", "x", nx=True, px=5000):
        time.sleep(1)


def unlock(bank: Bank) -> None:
    bank.sql.execute("SELECT pg_advisory_unlock(7)")
    bank.redis.delete("lock")


def unlock_elsewhere(bank: Bank) -> None:
    """In the session that it has for such things: a pool gave it another one."""
    bank.redis.expire("lock", 60)


def unlock_never(bank: Bank) -> None:
    pass


TAKE = (session_lock, session_lock_or_not, key_without_lease, key_with_a_lease)
GIVE_BACK = (unlock, unlock_elsewhere, unlock_never)


def made_of(take: Callable[[Bank], Any], give_back: Callable[[Bank], Any]) -> Callable[[Bank, int], str]:
    @contextmanager
    def lock(bank: Bank) -> Iterator[None]:
        take(bank)
        yield
        give_back(bank)

    return locked_by(lock)


@pytest.mark.parametrize(("take", "give_back"), [*product(TAKE, GIVE_BACK)])
def test_what_is_found_with_fewer_faults_is_found_with_more(
    take: Callable[[Bank], Any], give_back: Callable[[Bank], Any], explore: Explore
) -> None:
    kinds = frozenset({Fault.CRASH, Fault.LOST_REPLY})
    results = [explore(made_of(take, give_back), faults=faults, kinds=kinds) for faults in (0, 1)]
    assert [result.cause for result in results] == ["", ""]
    fewer, more = results
    assert fewer.found.keys() <= more.found.keys()
    assert fewer.finals <= more.finals
    assert more.under(None) == fewer.under(None)


def test_two_faults_find_what_one_finds(explore: Explore) -> None:
    lock = made_of(session_lock, unlock_never)
    one, two = (explore(lock, faults=faults, kinds=frozenset({Fault.CRASH})) for faults in (1, 2))
    assert one.found.keys() <= two.found.keys()
    for fault in (None, Fault.CRASH):
        assert [*two.gravity, UNBROKEN].index(two.under(fault)) <= [*one.gravity, UNBROKEN].index(
            one.under(fault)
        )
    assert one.under(None) == "stalled"
