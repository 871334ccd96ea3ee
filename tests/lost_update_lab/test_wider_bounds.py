"""A wider bound finds more, never less: what is found with K faults is found with K + 1 too, under the same hazard.

A session lock that was never given back was `stalled` without faults and `kept` with one: where no worker could go on,
and a fault might still have come, the schedule in which none comes was not judged.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings

from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.search.search import Search
from tests.lost_update_lab.bank import Bank, GaveUp, locked_by
from tests.lost_update_lab.conftest import opened
from tests.lost_update_lab.generated_locks import Made, locks

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
#: the lock with which a wider bound once hid a stall, and one of another kind
SHORTEST = {(session_lock, each) for each in GIVE_BACK} | {(key_with_a_lease, unlock_elsewhere)}


def made_of(take: Callable[[Bank], Any], give_back: Callable[[Bank], Any]) -> Callable[[Bank, int], str]:
    @contextmanager
    def lock(bank: Bank) -> Iterator[None]:
        take(bank)
        yield
        give_back(bank)

    return locked_by(lock)


def better(fewer: SearchResult, more: SearchResult) -> list[str]:
    """What the wider search does not find, or calls by a better word."""
    missing = fewer.found.keys() - more.found.keys()
    found = [f"{word} under {faults or 'no fault'} is found no more" for word, faults in sorted(missing)]
    found += ["an end is reached no more"] * (not fewer.finals <= more.finals)
    words = [*fewer.gravity, UNBROKEN]
    for fault in (None, *sorted(fewer.fired)):
        was, now = fewer.under(fault), more.under(fault)
        if words.index(now) > words.index(was):
            found.append(f"{fault or 'no fault'}: {was} became {now}")
    return found


@pytest.mark.deep
@pytest.mark.parametrize(
    ("take", "give_back"),
    [
        pytest.param(*each, marks=[] if each in SHORTEST else [pytest.mark.deep])
        for each in product(TAKE, GIVE_BACK)
    ],
)
def test_what_is_found_with_fewer_faults_is_found_with_more(
    take: Callable[[Bank], Any], give_back: Callable[[Bank], Any], explore: Explore
) -> None:
    kinds = frozenset({Fault.CRASH, Fault.LOST_REPLY})
    fewer, more = (explore(made_of(take, give_back), faults=faults, kinds=kinds) for faults in (0, 1))
    assert (fewer.cause, more.cause) == ("", "")
    assert better(fewer, more) == []
    assert more.under(None) == fewer.under(None)


def test_two_faults_find_what_one_finds(explore: Explore) -> None:
    lock = made_of(session_lock, unlock_never)
    one, two = (explore(lock, faults=faults, kinds=frozenset({Fault.CRASH})) for faults in (1, 2))
    assert better(one, two) == []
    assert one.under(None) == "stalled"
    assert "stalled under no fault is found no more" in better(one, explore(locked_by(nullcontext_of)))


def nullcontext_of(bank: Bank) -> nullcontext[None]:
    """The control: no search of another lock finds what this one finds."""
    return nullcontext()


def generated(urls: tuple[str, str], faults: tuple[int, int], kinds: Collection[Fault], examples: int) -> int:
    """Search that many locks within both bounds. Returns how many searches found something."""
    broken = 0

    @settings(max_examples=examples, derandomize=True, database=None, deadline=None)
    @given(locks())
    def holds(lock: Made) -> None:
        nonlocal broken
        results = []
        for number in faults:
            with opened(urls, lock.deposit, faults=number, kinds=frozenset(kinds)) as harness:
                results.append(Search(harness).explore())
        assert [result.cause for result in results] == ["", ""]
        assert better(*results) == []
        assert results[0].under(None) == results[1].under(None)
        broken += results[0].worst != UNBROKEN

    holds()
    return broken


@pytest.mark.deep
def test_the_same_holds_for_generated_locks(explorer_urls: tuple[str, str]) -> None:
    assert generated(explorer_urls, (0, 1), (Fault.CRASH, Fault.LOST_REPLY), 5) > 0


@pytest.mark.deep
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("faults", "kinds", "examples"),
    # the short form of make test-deep runs the first
    [((0, 1), Fault, 40), ((0, 1), Fault, 200), ((1, 2), (Fault.CRASH, Fault.LOST_REPLY), 60)],
)
def test_the_same_holds_for_many_generated_locks(
    faults: tuple[int, int], kinds: Collection[Fault], examples: int, explorer_urls: tuple[str, str]
) -> None:
    assert generated(explorer_urls, faults, kinds, examples) > examples / 10
