"""Subscriptions: it is known which message comes to whom, and how it is read, so such schedules run in memory too.

The search is the same as when each is executed, and an answer that forgets who listens, or a message, is noticed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis

from locks.fair_lock import FairLock
from locks.token_pubsub import TokenPubSubLock
from lost_update_lab.adapters import redis_py
from lost_update_lab.gates.redis import messages
from lost_update_lab.harness import Harness
from lost_update_lab.model.bounds import SECOND, Fault
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.search import search
from lost_update_lab.search.search import Search
from lost_update_lab.servers.redis import memoised, server, wire
from tests.lost_update_lab import bank

Explore = Callable[..., SearchResult]


def woken(own: bank.Bank) -> Any:
    """A waiter subscribes, asks once more, and sleeps until a release is published."""
    return TokenPubSubLock("lock", redis=own.redis, lease=2.0)


def queued(own: bank.Bank) -> Any:
    """A waiter subscribes in its handshake, and asks over the same connection."""
    pool = own.redis.connection_pool
    fresh = redis.ConnectionPool(pool.connection_class, **pool.connection_kwargs)
    return FairLock("lock", redis=redis.Redis(connection_pool=fresh), lease=2.0, renew=False)


@contextmanager
def handed_on(own: bank.Bank) -> Iterator[None]:
    """The message is the lock: who hears `go` is inside. The first one needs none."""
    with own.redis.pubsub(ignore_subscribe_messages=True) as messages:  # type: ignore[no-untyped-call]
        if not own.redis.set("lock", 1, nx=True):
            messages.subscribe("go")
            if not own.redis.get("over"):
                while messages.get_message(timeout=5) is None:
                    pass
        yield
        own.redis.set("over", 1)
        own.redis.publish("go", 1)


@contextmanager
def if_anybody_listens(own: bank.Bank) -> Iterator[None]:
    """How many have heard it is the reply to PUBLISH, and decides what comes next."""
    with own.redis.pubsub() as messages:  # type: ignore[no-untyped-call]
        if not own.redis.setnx("lock", 1):
            messages.subscribe("go")
            while (messages.get_message(timeout=5) or {}).get("type") != "message" and own.redis.exists(
                "lock"
            ):
                pass
        yield
        if not own.redis.publish("go", 1):
            own.redis.delete("lock")


def several_channels(own: bank.Bank, amount: int) -> str:
    """A pattern, two subscriptions over one connection, the end of one, and two messages of one script."""
    if amount == 20:
        own.redis.eval(
            "redis.call('PUBLISH', 'one', ARGV[1]) redis.call('PUBLISH', 'two', ARGV[1])", 0, "free"
        )
        return bank.add(own, amount)
    with own.redis.pubsub() as messages:  # type: ignore[no-untyped-call]
        messages.subscribe("one", "two")
        messages.psubscribe("o*")
        messages.unsubscribe("two")
        heard = []
        while message := messages.get_message(timeout=1):
            heard.append(message["type"])
    own.redis.set("heard", " ".join(heard))
    return bank.add(own, amount)


#: its reply does not tell how many have heard it
RELEASE = "redis.call('DEL', KEYS[1]) redis.call('PUBLISH', KEYS[2], 'free') return 1"


def takes(own: bank.Bank, value: int) -> None:
    while not own.redis.set("lock", value, nx=True):
        time.sleep(1)


def missed(own: bank.Bank, amount: int) -> str:
    """A holds the lock twice. B met its first holding, and subscribes. Had A released it before, B hears of nothing. It
    finds the second holding, and goes in all the same: only whether a message came tells the two apart."""
    if amount == 10:
        for turn in (1, 2):
            takes(own, turn)
            bank.add(own, 5)
            own.redis.eval(RELEASE, 2, "lock", "go")
        return "ok"
    with own.redis.pubsub() as messages:  # type: ignore[no-untyped-call]
        if (held := own.redis.set("lock", 3, nx=True, get=True)) == b"1":
            messages.subscribe("go")
            messages.get_message(timeout=1)
            turn = own.redis.get("lock")
            if messages.get_message(timeout=0) or turn != b"2":
                takes(own, 3)
        elif held:
            takes(own, 3)
        bank.add(own, amount)
    own.redis.eval(RELEASE, 2, "lock", "go")
    return "ok"


def told(result: SearchResult) -> tuple[Any, ...]:
    return result.counts, result.finals, result.schedules, result.steps, result.states, result.exhausted


@pytest.mark.deep
@pytest.mark.parametrize(
    ("deposit", "kinds"),
    [
        (bank.locked_by(woken), frozenset({Fault.CRASH, Fault.LOST_REPLY})),
        (bank.locked_by(woken), frozenset({Fault.PAUSE, Fault.FAILOVER})),
        (bank.locked_by(handed_on), frozenset({Fault.CRASH})),
        (bank.locked_by(if_anybody_listens), frozenset({Fault.CRASH})),
        (several_channels, frozenset({Fault.LOST_REPLY})),
    ],
)
def test_in_memory_or_executed_the_search_is_the_same(explore: Explore, deposit: Any, kinds: Any) -> None:
    bounds = {"faults": 1, "kinds": kinds, "patience": SECOND}
    in_memory = explore(deposit, **bounds)
    executed = explore(deposit, **bounds, recorded=False)
    assert told(in_memory) == told(executed)
    assert in_memory.exhausted, in_memory.cause
    assert in_memory.in_memory > in_memory.schedules / 3
    assert executed.in_memory == 0


@pytest.mark.deep
@pytest.mark.parametrize("kinds", [{Fault.CRASH, Fault.LOST_REPLY}, {Fault.PAUSE, Fault.FAILOVER}])
def test_a_connection_that_listens_from_its_handshake_on_may_ask_too(
    explore: Explore, kinds: set[Fault]
) -> None:
    """An executed schedule ends the thread of its renewal, so the last states are not the same ones."""
    deposit, bounds = bank.locked_by(queued), {"faults": 1, "kinds": frozenset(kinds), "patience": SECOND}
    in_memory, executed = explore(deposit, **bounds), explore(deposit, **bounds, recorded=False)
    assert told(in_memory)[:4] == told(executed)[:4]
    assert in_memory.exhausted, in_memory.cause
    assert in_memory.in_memory > in_memory.schedules / 4


@pytest.mark.deep
@pytest.mark.parametrize("recorded", [True, False])
def test_a_message_that_is_unread_is_a_part_of_the_state(
    explore: Explore, monkeypatch: pytest.MonkeyPatch, recorded: bool
) -> None:
    found = explore(missed, patience=SECOND, recorded=recorded)
    assert (found.worst, found.exhausted) == ("lost", True), found.cause
    for module in (memoised, server):
        monkeypatch.setattr(module, "told", lambda unread: b"")
    assert explore(missed, patience=SECOND, recorded=recorded).worst != "lost", "the must-fail control"


# -- must-fail: something is forgotten -------------------------------------------------------------------------------


def noticed(explore: Explore, lock: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each schedule in memory is executed as well. → why the search ended"""
    monkeypatch.setattr(search, "LOOK_EVERY", 1)
    result = explore(bank.locked_by(lock), patience=SECOND)
    assert not result.exhausted
    return result.cause


@pytest.mark.answers_change
def test_answers_that_forget_who_listens_are_noticed(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = memoised.RedisAnswers.question

    def forgetful(answers: Any, *asked: Any) -> Any:
        found = right(answers, *asked)
        return found and found._replace(heard=(True,) if found.heard else ())

    monkeypatch.setattr(memoised.RedisAnswers, "question", forgetful)
    assert "not repeatable" in noticed(explore, if_anybody_listens, monkeypatch)


@pytest.mark.deep
def test_a_message_that_is_forgotten_is_noticed(explore: Explore, monkeypatch: pytest.MonkeyPatch) -> None:
    right = memoised.MemoisedRedis.reads

    def forgetful(server: Any, who: Any) -> Any:
        found = right(server, who)
        server.sessions[who] = server.sessions[who]._replace(inbox=())
        return found

    monkeypatch.setattr(memoised.MemoisedRedis, "reads", forgetful)
    monkeypatch.setattr(search, "LOOK_EVERY", 1)
    result = explore(several_channels, patience=SECOND)
    assert not result.exhausted
    assert "not repeatable" in result.cause


@pytest.mark.deep
def test_a_server_that_tells_of_keys_is_executed(harness: Callable[..., Harness]) -> None:
    """Then any command may send a message, and so may the end of a lease."""
    found = harness(bank.locked_by(woken))
    valkey: Any = found.servers["redis"]
    valkey.ask("CONFIG", "SET", "notify-keyspace-events", "KEA")
    try:
        result = Search(found).explore()
    finally:
        valkey.ask("CONFIG", "SET", "notify-keyspace-events", "")
    assert result.exhausted, result.cause
    assert result.in_memory == 0


def test_messages_that_cannot_be_looked_into_prove_nothing(
    explore: Explore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are a part of the state. So it is with TLS."""
    monkeypatch.setattr(redis_py, "arrived", lambda _: None)
    result = explore(bank.locked_by(woken))
    assert not result.exhausted
    assert messages.UNSEEN in result.cause


def test_what_came_is_split_into_messages() -> None:
    told = [
        b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\n\r\n\r\n",
        b":41\r\n",
        b"$-1\r\n",
        b">1\r\n%1\r\n+a\r\n_\r\n",
    ]
    assert wire.replies(b"".join(told)) == told
    assert wire.replies(b"") == []
    for cut in range(1, len(told[0])):
        assert wire.replies(told[1] + told[0][:cut]) is None
