"""SPOP takes the least members: which ones it takes was another matter in each schedule, and so an operation without an
invariant was accused of what chance had done."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest
import redis

from lost_update_lab import Result, worker
from lost_update_lab.schedule.schedule_id import exactly
from tests.lost_update_lab.bank import Bank

Trial = Callable[..., Result]

LOOK_FIRST = "if redis.call('SCARD', KEYS[1]) > 0 then return redis.call('SPOP', KEYS[1]) end"


def keys() -> Any:
    return redis.Redis.from_url(os.environ["REDIS_URL"])


def opened() -> None:
    keys().sadd("free", *range(50))


def takes() -> Any:
    return keys().spop("free")


def takes_two() -> Any:
    return sorted(keys().spop("free", 2))


def takes_in_a_script() -> Any:
    return keys().eval(LOOK_FIRST, 1, "free")


def takes_in_a_transaction() -> Any:
    with keys().pipeline() as together:
        return together.spop("free").incr("sold").execute()[0]


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("operation", [takes, takes_two, takes_in_a_script, takes_in_a_transaction])
def test_who_takes_a_member_by_spop_is_not_accused(trial: Trial, operation: Callable[[], Any]) -> None:
    result = trial([worker("Ann", operation), worker("Bob", operation)], setup=opened)
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)


@pytest.mark.parametrize("protocol", [2, 3])
def test_the_reply_is_that_of_the_server(protocol: int, harness: Callable[..., Any]) -> None:
    told: list[Any] = []

    def asks(bank: Bank, amount: int) -> str:
        own = redis.Redis.from_url(bank.redis_url, protocol=protocol)
        own.sadd("free", "b", "a", "c", "d")
        own.set("text", "x")
        for command in (["free"], ["none"], ["free", 0], ["free", 2], ["free", 9], ["none", 2]):
            told.append(own.execute_command("SPOP", *command))
        for command in (["text"], ["free", -1], ["text", 1], []):
            with pytest.raises(redis.ResponseError) as error:
                own.execute_command("SPOP", *command)
            told.append(str(error.value).split()[0])
        return "ok"

    harness(asks, workers=1).run(exactly(()), {})
    kind = type(told[2])
    assert told[:2] == [b"a", None]
    assert [sorted(each) for each in told[2:6]] == [[], [b"b", b"c"], [b"d"], []]
    assert all(type(each) is kind for each in told[2:6])
    assert told[6:] == ["WRONGTYPE", "value", "WRONGTYPE", "wrong"]
