"""A script that was loaded past the gates is told virtual times, too; a function that would ask for them is refused.

The real clock stands still while schedules are executed, so a lock by the server's clock was `kept` however long its
holder worked."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from typing import Any

import pytest
import redis

from lost_update_lab import Result, worker
from lost_update_lab.servers.redis.library import IN_THE_OPERATION, RedisLibrary
from lost_update_lab.servers.redis.scripts import number_of
from lost_update_lab.under_test.scenario import Mistake

Trial = Callable[..., Result]

#: a lease of 10 s, as a time in the value
TAKE = """
local now = tonumber(redis.call('TIME')[1])
if tonumber(redis.call('HGET', KEYS[1], 'till') or '0') > now then return 0 end
redis.call('HSET', KEYS[1], 'till', now + 10)
return 1
"""
NUMBER = hashlib.sha1(TAKE.encode(), usedforsecurity=False).hexdigest()
UNKNOWN_YET = "return redis.call('DECRBY', KEYS[1], ARGV[1]) -- of this test alone"
LIBRARY = "#!lua name=lab\nredis.register_function('called', function(KEYS, ARGV) {} end)"


def keys() -> Any:
    return redis.Redis.from_url(os.environ["REDIS_URL"])


def loads_it() -> None:
    keys().script_load(TAKE)
    keys().set("stock", 10)


def has_used_it() -> None:
    keys().register_script(TAKE)(keys=["another"])
    keys().set("stock", 10)


def sells(amount: int) -> None:
    """30 s under a lease of 10 s."""
    own = keys()
    while not own.evalsha(NUMBER, 1, "lock"):
        time.sleep(1)
    stock = int(own.get("stock"))
    time.sleep(30)
    own.set("stock", stock - amount)
    own.delete("lock")


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("setup", [has_used_it, loads_it])
def test_a_script_of_the_setup_is_told_virtual_times(trial: Trial, setup: Callable[[], None]) -> None:
    result = trial([worker("Ann", sells, 1), worker("Bob", sells, 2)], setup=setup)
    assert result.verdict == "violated"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return redis.call('TIME')", "uses the server's own clock, which no schedule can move .TIME"),
        ("return redis.call('PTTL', KEYS[1])", "which no schedule can move .PTTL"),
        ("return redis.call('SET', KEYS[1], 1, 'nx', 'px', 500)", "which no schedule can move .PX"),
        ("return redis.call('INCRBY', KEYS[1], math.random(5))", "chooses at random, so no order"),
        ("return redis.call('SPOP', KEYS[1])", "chooses at random, so no order"),
        ("return redis.call(ARGV[1], KEYS[1])", "computes which commands it calls"),
        ("return redis.call('TI' .. 'ME')", "computes which commands it calls"),
        ("return redis.call('SRANDMEMBER', KEYS[1])", "the server chooses at random .SRANDMEMBER"),
        ("return redis.call('OBJECT', 'IDLETIME', KEYS[1])", "the server measures that by its own clock"),
        ("return redis.call('SELECT', 1)", "reaches the keys of another numbered database"),
    ],
)
def test_a_function_that_decides_by_what_no_schedule_moves(trial: Trial, body: str, told: str) -> None:
    def calls(amount: int) -> None:
        keys().fcall("called", 1, "lock", amount)

    def setup() -> None:
        keys().function_load(LIBRARY.format(body), replace=True)
        keys().set("n", 0)

    with pytest.raises(Mistake, match=told):
        trial([worker("Ann", calls, 1), worker("Bob", calls, 2)], setup=setup)


def test_another_function_is_explored(trial: Trial) -> None:
    def calls(amount: int) -> None:
        keys().fcall("called", 1, "n", amount)

    def setup() -> None:
        body = "local time = ARGV[1] return redis.call('INCRBY', KEYS[1], time)"
        keys().function_load(LIBRARY.format(body), replace=True)
        keys().set("n", 0)

    assert trial([worker("Ann", calls, 1), worker("Bob", calls, 2)], setup=setup).verdict == "kept"


def without_show(*command: Any) -> Any:
    if command[1] == "SHOW":
        raise redis.ResponseError("unknown subcommand 'SHOW'. Try SCRIPT HELP.")
    return [int(command[2] == number_of(b"return 1"))]


def test_a_redis_that_does_not_tell_its_scripts() -> None:
    found = RedisLibrary(without_show).unseen([b"EVALSHA", number_of(b"return 1"), b"0"])
    assert found
    assert found.remedy == IN_THE_OPERATION
    assert RedisLibrary(without_show).unseen([b"EVALSHA", number_of(b"return 2"), b"0"]) is None


def ten_in_stock() -> None:
    keys().set("stock", 10)


def sells_by_a_script_that_it_may_have_to_send(amount: int) -> None:
    own, number = keys(), hashlib.sha1(UNKNOWN_YET.encode(), usedforsecurity=False).hexdigest()
    try:
        own.evalsha(number, 1, "stock", amount)
    except redis.exceptions.NoScriptError:
        own.eval(UNKNOWN_YET, 1, "stock", amount)


def test_the_first_run_sends_the_script_itself(trial: Trial) -> None:
    """Redis knows it from then on. That was refused, as something that a process does only once."""
    workers = [worker(name, sells_by_a_script_that_it_may_have_to_send, 1) for name in ("Ann", "Bob")]
    sold = lambda *told: keys().get("stock") == b"8", "a sale is lost"
    result = trial(workers, setup=ten_in_stock, invariant=sold, control=False)
    assert (result.verdict, result.exhausted) == ("kept", True)
