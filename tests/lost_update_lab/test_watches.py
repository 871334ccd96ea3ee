"""WATCH, and what breaks it: known as the server knows it, a part of each state, and answered from memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
import redis
from redis import WatchError

from lost_update_lab.model.bounds import SECOND, Fault
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.servers.redis import memoised, server
from lost_update_lab.servers.redis.server import RedisServer
from lost_update_lab.servers.redis.watches import BROKEN_WATCH, Watch, watch_after
from tests.lost_update_lab.bank import Bank, add, locked_by
from tests.lost_update_lab.test_in_memory_run import assert_the_same_in_memory, noticed

Explore = Callable[..., SearchResult]
ME = (0, 0, 0)


@pytest.mark.parametrize(
    ("before", "command", "in_multi", "after"),
    [
        (None, "WATCH b a", False, Watch((b"a", b"b"))),
        (Watch((b"b",)), "watch a b", False, Watch((b"a", b"b"))),
        (BROKEN_WATCH, "WATCH a", False, BROKEN_WATCH),
        (BROKEN_WATCH, "UNWATCH", False, None),
        (Watch((b"a",)), "UNWATCH", True, Watch((b"a",))),  # queued, and too late
        (Watch((b"a",)), "WATCH b", True, Watch((b"a",))),  # refused
        (Watch((b"a",)), "EXEC", True, None),
        (Watch((b"a",)), "EXEC", False, Watch((b"a",))),  # refused
        (Watch((b"a",)), "DISCARD", True, None),
        (Watch((b"a",)), "SET a 1", False, Watch((b"a",))),
    ],
)
def test_what_a_session_watches(
    before: Watch | None, command: str, in_multi: bool, after: Watch | None
) -> None:
    assert watch_after(before, command.encode().split(), in_multi) == after


@pytest.mark.parametrize(
    "command",
    [
        "SET held 1", "SET held 2 NX", "SETNX gone 1", "DEL gone", "DEL held", "GETSET held 1", "GET held",
        "PEXPIRE held 0", "PEXPIRE held 100000", "PERSIST held", "SET other 1", "RENAME held other",
        "EVAL return(redis.call('SET','held','1')) 0",
    ],
)  # fmt: skip
@pytest.mark.parametrize("own", [False, True])
def test_a_watch_is_known_to_be_broken_exactly_where_exec_fails(
    explorer_urls: tuple[str, str], command: str, own: bool
) -> None:
    url = explorer_urls[1]
    with (
        closing(RedisServer(url)) as explored,
        closing(redis.Redis.from_url(url)) as others,
        closing(redis.Redis.from_url(url, single_connection_client=True)) as mine,
    ):
        others.flushall()
        others.set("held", 1)
        number = mine.client_id()
        mine.execute_command("WATCH", "held", "gone")
        explored.watches_of.sent(ME, number, [b"WATCH", b"held", b"gone"], False)
        (mine if own else others).execute_command(*command.split())
        explored.touched()
        broken = explored.watching()[ME].broken
        mine.execute_command("MULTI")
        assert (mine.execute_command("EXEC") is None) == broken
        others.flushall()


# -- locks and deposits that watch ------------------------------------------------------------------------------------


def release(bank: Bank, me: bytes) -> None:
    """WATCH, GET, compare, MULTI, DEL, EXEC, and again where somebody was faster."""
    with bank.redis.pipeline() as pipe:
        while True:
            try:
                pipe.watch("lock")
                if pipe.get("lock") == me:
                    pipe.multi()
                    pipe.delete("lock")
                    pipe.execute()
                return
            except WatchError:
                continue


@contextmanager
def by_set(bank: Bank) -> Iterator[None]:
    me = str(os.getpid()).encode()
    while not bank.redis.set("lock", me, nx=True, ex=10):
        time.sleep(0.05)
    yield
    release(bank, me)


@contextmanager
def by_getset(bank: Bank) -> Iterator[None]:
    """Its polls write what is there already: no key shows it, and each breaks the holder's WATCH."""
    while bank.redis.getset("lock", "1") == b"1":
        time.sleep(0.05)
    yield
    release(bank, b"1")


def executed(pipe: Any) -> bool:
    """EXEC. False: the WATCH was broken."""
    try:
        pipe.execute()
    except WatchError:
        return False
    return True


def the_same_again(bank: Bank, amount: int) -> str:
    """A writes the value that is there; B does something only if nobody has."""
    bank.redis.set("flag", 1)
    if amount == 10:
        bank.redis.get("done")
        return "ok"
    with bank.redis.pipeline() as pipe:
        pipe.watch("flag")
        pipe.get("flag")
        pipe.multi()
        pipe.incr("done")
        return "whole" if executed(pipe) else "broken"


def ends_meanwhile(bank: Bank, amount: int) -> str:
    """A lease that ends breaks a WATCH, though its key was never written."""
    bank.redis.set("lease", 1, px=1000)
    with bank.redis.pipeline() as pipe:
        pipe.watch("lease")
        time.sleep(0.5 * amount / 10)
        pipe.multi()
        pipe.incr("done")
        if not executed(pipe):
            return "broken"
    return add(bank, amount)


def sleeps_while_it_watches(bank: Bank, amount: int) -> str:
    """A polls, and sleeps with a WATCH: what breaks it shows in no key."""
    if amount == 20:
        time.sleep(0.25)
        bank.redis.set("flag", 1)
        return "ok"
    bank.redis.set("flag", 1)
    for _ in range(8):
        with bank.redis.pipeline() as pipe:
            pipe.watch("flag")
            time.sleep(0.1)
            pipe.multi()
            pipe.get("flag")
            if not executed(pipe):
                bank.redis.incr("broken")
    return "ok"


def finals(result: SearchResult) -> Any:
    assert (result.cause, result.exhausted) == ("", True)
    return result.finals


@pytest.mark.deep
@pytest.mark.parametrize("deposit", [the_same_again, sleeps_while_it_watches, ends_meanwhile])
def test_the_search_comes_to_what_the_referee_comes_to(explore: Explore, deposit: Any) -> None:
    bounds: dict[str, Any] = {"slack": 0} if deposit is ends_meanwhile else {}
    assert finals(explore(deposit, **bounds)) == finals(explore(deposit, **bounds, reduction="none"))


@pytest.mark.deep(short=False)
@pytest.mark.parametrize("lock", [by_set, by_getset])
def test_the_same_holds_for_locks_and_a_crash(explore: Explore, lock: Any) -> None:
    bounds: dict[str, Any] = {"faults": 1, "kinds": {Fault.CRASH}, "slack": 0, "patience": SECOND // 5}
    deposit = locked_by(lock)
    assert finals(explore(deposit, **bounds)) == finals(explore(deposit, **bounds, reduction="none"))


@pytest.mark.deep
@pytest.mark.parametrize(
    ("deposit", "kinds"),
    [
        (the_same_again, frozenset({Fault.CRASH, Fault.LOST_REPLY, Fault.FAILOVER})),
        (ends_meanwhile, frozenset({Fault.CLOCK_JUMP, Fault.CRASH})),
        pytest.param(locked_by(by_set), frozenset({Fault.FAILOVER, Fault.CRASH}), marks=pytest.mark.deep),
        pytest.param(locked_by(by_set), frozenset({Fault.PAUSE, Fault.LOST_REPLY}), marks=pytest.mark.deep),
        pytest.param(
            locked_by(by_getset), frozenset({Fault.CRASH, Fault.CLOCK_JUMP}), marks=pytest.mark.deep
        ),
    ],
)
def test_in_memory_or_executed_the_search_is_the_same(explore: Explore, deposit: Any, kinds: Any) -> None:
    assert_the_same_in_memory(explore, deposit, kinds)


# -- must-fail: a broken WATCH is forgotten ---------------------------------------------------------------------------


@pytest.mark.answers_change
def test_answers_that_forget_a_broken_watch_are_noticed(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = memoised.RedisAnswers.question

    def forgetful(answers: Any, of: Any, *rest: Any) -> Any:
        asked = right(answers, of, *rest)
        return asked and asked._replace(fails=False)

    monkeypatch.setattr(memoised.RedisAnswers, "question", forgetful)
    assert "not repeatable" in noticed(explore, the_same_again, monkeypatch)


def test_a_command_that_forgets_whose_watch_it_breaks_is_noticed(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memoised.MemoisedRedis, "_break", lambda server, watchers: None)
    assert "not repeatable" in noticed(explore, the_same_again, monkeypatch)


@pytest.mark.deep
def test_a_state_without_the_broken_watch_misses_an_end(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = finals(explore(the_same_again))
    for module in (memoised, server):
        monkeypatch.setattr(module, "described", lambda watching: b"")
    assert explore(the_same_again).finals < every


# -- locks of the field -----------------------------------------------------------------------------------------------


@pytest.mark.deep
def test_polls_beside_a_watch_are_one(explore: Explore) -> None:
    result = explore(locked_by(by_set), faults=1, kinds={Fault.CRASH})
    assert (result.cause, result.exhausted, result.worst) == ("", True, "unbroken")
    assert result.states < 500


@pytest.mark.deep
@pytest.mark.parametrize(
    ("lock", "crashed", "paused"), [(by_set, "unbroken", "lost"), (by_getset, "stalled", "unbroken")]
)
def test_a_lock_that_is_given_back_by_a_watch_is_searched_to_its_end(
    explore: Explore, lock: Any, crashed: str, paused: str
) -> None:
    """In each crash a pipeline was left in the middle of its WATCH, and its connection was lost to the pool: after a
    hundred of them every worker failed at once."""
    result = explore(locked_by(lock), faults=1)
    assert (result.cause, result.exhausted) == ("", True)
    assert [result.under(kind) for kind in (None, Fault.CRASH, Fault.PAUSE)] == ["unbroken", crashed, paused]
