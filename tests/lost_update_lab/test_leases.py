"""Leases are virtual from the command that gives them: no wall clock ends one, and nothing is written to the server
meanwhile that a WATCH would see."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import pytest
from redis import Redis, ResponseError, WatchError

from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.coded_lease import apart, coded, decoded
from lost_update_lab.model.epoch import Epoch
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.schedule.schedule_id import exactly
from lost_update_lab.servers.redis.leases import BY_A_KEY, BY_SET, given
from lost_update_lab.servers.redis.library import AS_A_SCRIPT
from lost_update_lab.servers.redis.server import RedisServer
from lost_update_lab.snapshot.redis import RedisSnapshot
from tests.lost_update_lab.bank import Bank, locked_by

Explore = Callable[..., SearchResult]


@pytest.mark.parametrize("ms", [1, 5, 999, 30_000, 86_400_000, 1 << 31])
@pytest.mark.parametrize("passed", [-apart(-1), 0, 1, 1000, 500_000])
def test_a_code_says_how_long_it_was_however_late_the_look(ms: int, passed: int) -> None:
    assert decoded(coded(ms) - passed) == ms


def test_grants_that_were_queued_together_are_told_apart(explorer_urls: tuple[str, str]) -> None:
    """EXEC gives them in another order, each some ms before or after the other one."""
    words = [b"PEXPIRE", b"lock", b"5"]
    with closing(RedisServer(explorer_urls[1])) as server:
        server.begin()
        first, second = (int(server.clocked(words, b"", 0)[1].split()[-1]) for _ in range(2))
    assert abs(first - second) > 500
    assert decoded(first) == decoded(second) == 5


def test_what_is_no_code_was_given_past_the_gates() -> None:
    assert decoded(5_000) is None


NOW = 1_900_000_000_000


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("SET k v NX PX 5", f"SET k v NX PX {coded(5)}"),
        ("SET k v EX 5 NX", f"SET k v PX {coded(5000)} NX"),
        ("SET k v PXAT 1900000000007", f"SET k v PX {coded(7)}"),
        ("SET k PX", "SET k PX"),
        ("SET k v EX 0", "SET k v EX 0"),
        ("SETEX k 5 v", f"PSETEX k {coded(5000)} v"),
        ("EXPIRE k 5", f"PEXPIRE k {coded(5000)}"),
        ("EXPIREAT k 1900000001 NX", f"PEXPIRE k {coded(1000)} NX"),
        ("PEXPIRE k -1", "PEXPIRE k -1"),
        ("PEXPIRE held 600 GT", f"PEXPIRE held {coded(600)}"),
        ("PEXPIRE held 400 GT", "EXISTS "),
        ("PEXPIRE held 600 LT", "EXISTS "),
        ("PEXPIRE k 600 GT", "EXISTS "),
        ("PEXPIRE k 600 LT", f"PEXPIRE k {coded(600)}"),
        ("GETEX k EX 5", f"GETEX k PX {coded(5000)}"),
        ("GETEX k PERSIST", "GETEX k PERSIST"),
    ],
)
def test_what_the_server_is_asked(command: str, asked: str) -> None:
    assert list(given(command.encode().split(), NOW, {"held": 500})) == asked.encode().split(b" ")


SCRIPT = """
redis.call('SET', KEYS[1], 'x', 'PX', ARGV[1])
local first = redis.call('PTTL', KEYS[1])
redis.call('pexpire', KEYS[1], 200)
return {first, redis.call('PTTL', KEYS[1]), redis.call('PEXPIRE', KEYS[1], 100, 'GT'),
    redis.call('EXPIRE', KEYS[1], 1, 'GT'), redis.call('TTL', KEYS[1]), redis.call('PTTL', 'other'),
    redis.call('EXPIRETIME', KEYS[1])}
"""


def test_a_worker_sees_its_leases_in_virtual_time(harness: Callable[..., Any]) -> None:
    told: list[Any] = []

    def asks(bank: Bank, amount: int) -> str:
        client = bank.redis
        client.set("other", "x", px=7)
        told.append(client.pttl("other"))
        told.append(client.eval(SCRIPT, 1, "own", 50))
        time.sleep(0.5)
        with client.pipeline() as together:
            told.append(together.pttl("own").ttl("own").exists("other").time().execute())
        told.append(client.expiretime("own"))
        return "ok"

    harness(asks, workers=1).run(exactly(()), {})
    epoch = round(Epoch.shows)
    assert told == [
        7,
        [50, 200, 0, 1, 1, 7, epoch + 1],
        [500, 1, 0, (epoch, 500_000)],
        epoch + 1,
    ]  # fmt: skip


SETS = """
local old = redis.call('SET', KEYS[1], 'y', unpack(ARGV))
return {old, redis.call('PTTL', KEYS[1])}
"""


def test_a_set_that_returns_the_old_value_has_not_always_given_a_lease(harness: Callable[..., Any]) -> None:
    told: list[Any] = []

    def asks(bank: Bank, amount: int) -> str:
        client = bank.redis
        for words in ("NX", "XX", "IFEQ x", "IFEQ z", ""):
            client.set("held", "x", px=10_000)
            time.sleep(4)
            told.append(client.eval(SETS, 1, "held", *words.split(), "GET", "PX", 500)[1])
        told.append(client.eval(SETS, 1, "free", "NX", "GET", "PX", 500)[1])
        told.append(client.eval(SETS, 1, "none", "XX", "GET", "PX", 500)[1])
        return "ok"

    harness(asks, workers=1).run(exactly(()), {})
    assert told == [6000, 500, 500, 6000, 500, 500, -2]


MOVED = """
redis.call(ARGV[1], KEYS[1], KEYS[2])
return {redis.call('PTTL', KEYS[2]), redis.call('PEXPIRE', KEYS[2], 5000, 'LT')}
"""


@pytest.mark.parametrize("command", ["COPY", "RENAME", "RENAMENX"])
def test_what_is_left_of_a_lease_goes_with_its_key(command: str, harness: Callable[..., Any]) -> None:
    told: list[Any] = []

    def hands_on(bank: Bank, amount: int) -> str:
        for by_hand in (True, False):
            bank.redis.set("mine", "x", px=10_000)
            time.sleep(6)
            if by_hand:
                bank.redis.execute_command(command, "mine", "lock")
            told.append(
                [bank.redis.pttl("lock")] if by_hand else bank.redis.eval(MOVED, 2, "mine", "lock", command)
            )
            time.sleep(3)
            told.append(bank.redis.pttl("lock"))
            time.sleep(2)
            told.append(bank.redis.exists("lock"))
        return "ok"

    harness(hands_on, workers=1).run(exactly(()), {})
    assert told == [[4000], 1000, 0, [4000, 0], 1000, 0]


@contextmanager
def copied(bank: Bank) -> Iterator[None]:
    """Between two tries, more and less of the lease is left."""
    mine = f"of {os.getpid()} {threading.get_ident()}"
    bank.redis.set(mine, 1, px=10_000)
    time.sleep(9)
    while not bank.redis.copy(mine, "lock"):
        bank.redis.pexpire(mine, 1000)
        time.sleep(0.5)
    yield
    bank.redis.delete("lock")


def test_a_copy_has_what_was_left_and_its_holder_works_for_longer(explore: Explore) -> None:
    """The copy had the whole 10 s, and the lock was kept."""
    result = explore(locked_by(copied, work=3))
    assert (result.cause, result.worst) == ("", "lost")


@contextmanager
def watched(bank: Bank) -> Iterator[None]:
    """WATCH, GET, compare, MULTI, DEL, EXEC: the commonest release without Lua."""
    me = str(os.getpid()).encode()
    while not bank.redis.set("lock", me, nx=True, px=30_000):
        time.sleep(1)
    yield
    with bank.redis.pipeline() as release:
        release.watch("lock")
        if release.get("lock") == me:
            release.multi()
            release.delete("lock")
            release.execute()


@pytest.mark.deep
def test_a_watch_breaks_by_what_workers_write_and_by_nothing_else(explore: Explore) -> None:
    result = explore(locked_by(watched))
    assert (result.cause, result.exhausted, result.worst) == ("", True, "unbroken")


def counts(bank: Bank, amount: int) -> str:
    """Two transactions that watch: one of them finds that the other one was there, and begins again."""
    while True:
        with bank.redis.pipeline() as change:
            change.watch("balance")
            balance = int(change.get("balance") or 0)
            change.multi()
            change.set("balance", balance + amount)
            try:
                change.execute()
            except WatchError:
                continue
            return "ok"


@pytest.mark.deep
def test_whether_a_watch_is_broken_is_a_part_of_the_state(explore: Explore) -> None:
    finals = [explore(counts, reduction=reduction).finals for reduction in ("full", "none")]
    assert finals[0] == finals[1]
    assert all(b"30" in final for final in finals[0])


@pytest.mark.deep
def test_a_lease_of_milliseconds_ends_in_virtual_time(explore: Explore) -> None:
    @contextmanager
    def short(bank: Bank) -> Iterator[None]:
        while not bank.redis.set("lock", "x", nx=True, px=5):
            time.sleep(0.05)
        yield
        bank.redis.delete("lock")

    result = explore(locked_by(short))
    assert (result.cause, result.exhausted, result.worst) == ("", True, "lost")


def test_a_lease_that_is_longer_than_the_work_is_not_lost(explore: Explore) -> None:
    """However long the machine takes."""

    @contextmanager
    def short(bank: Bank) -> Iterator[None]:
        while not bank.redis.set("lock", "x", nx=True, px=500):
            time.sleep(1)
        yield
        bank.redis.delete("lock")

    result = explore(locked_by(short))
    assert (result.cause, result.worst) == ("", "unbroken")


def test_a_lease_of_the_setup_is_as_long_in_each_schedule(explorer_urls: tuple[str, str]) -> None:
    """The server's clock went on between the setup and a schedule's first look."""
    with closing(Redis.from_url(explorer_urls[1])) as client:
        client.set("lock", "x", px=5_000)
        with closing(RedisSnapshot(explorer_urls[1])) as snapshot:
            snapshot.restore()
        assert decoded(client.pttl("lock")) == 5_000
        client.flushdb()


def test_a_waiter_that_sleeps_for_as_long_as_the_lease_is_not_hurried(explore: Explore) -> None:
    """While it was watched, the lease stood, and its time went on all the same: it had less than nothing left, and the
    waiter came back each millisecond for a minute."""
    told: list[int] = []

    @contextmanager
    def waits_for_the_lease(bank: Bank) -> Iterator[None]:
        while not bank.redis.set("lock", "x", nx=True, px=20_000):
            told.append(bank.redis.pttl("lock"))
            time.sleep(max(told[-1], 1) / 1000)
        yield
        bank.redis.delete("lock")

    result = explore(locked_by(waits_for_the_lease))
    assert (result.cause, result.exhausted, result.worst) == ("", True, "unbroken")
    assert set(told) == {20_000, -2}  # -2: it was free by then


FUNCTION = """#!lua name=lab
server.register_function('take', function(keys) return server.call('SET', keys[1], 'x', 'NX', 'PX', 5000) end)
"""


@contextmanager
def by_a_function(bank: Bank) -> Iterator[None]:
    bank.redis.function_load(FUNCTION, replace=True)
    while not bank.redis.fcall("take", 1, "lock"):
        time.sleep(1)
    yield
    bank.redis.delete("lock")


@contextmanager
def by_a_dump(bank: Bank) -> Iterator[None]:
    bank.redis.set("free", "x")
    while not bank.redis.exists("lock"):
        with suppress(ResponseError):
            bank.redis.restore("lock", 5000, bank.redis.dump("free"))
    yield
    bank.redis.delete("lock")


@contextmanager
def by_a_field(bank: Bank) -> Iterator[None]:
    while not bank.redis.hsetnx("locks", "lock", "x"):
        time.sleep(1)
    bank.redis.execute_command("HPEXPIRE", "locks", 5000, "FIELDS", 1, "lock")
    yield
    bank.redis.hdel("locks", "lock")


@contextmanager
def by_a_field_in_a_script(bank: Bank) -> Iterator[None]:
    take = "redis.call('HSETNX', KEYS[1], 'lock', 'x'); return redis.call('HEXPIRE', KEYS[1], 5, 'FIELDS', 1, 'lock')"
    bank.redis.eval(take, 1, "locks")
    yield


@pytest.mark.parametrize(
    ("lock", "told", "remedy"),
    [
        (by_a_function, "the code of the function take uses the server's own clock", AS_A_SCRIPT),
        (by_a_dump, "the lease of lock was given in a way that no gate sees", BY_SET),
        (by_a_field, "HPEXPIRE lets a field of a hash end", BY_A_KEY),
        (by_a_field_in_a_script, "EVAL lets a field of a hash end", BY_A_KEY),
    ],
)
def test_a_lease_that_only_the_servers_own_clock_ends_decides_nothing(
    lock: Callable[[Bank], Any], told: str, remedy: str, explore: Explore
) -> None:
    """A paused holder kept such a field for ever, and the lock was `kept`. The length of the other lease was guessed
    by what was left of it, and on a busy machine it was another one."""
    result = explore(locked_by(lock), faults=1, kinds=frozenset({Fault.PAUSE}))
    assert told in result.cause
    assert (result.remedy, result.exhausted) == (remedy, False)
