"""A stream with consumer groups at the end of a schedule: what the server's own clock writes into it does not count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lost_update_lab import Result

Trial = Callable[..., Result]


def payments(redis: Any) -> None:
    redis.xadd("payments", {"amount": 5}, id="1-1")
    redis.xgroup_create("payments", "tellers", "0")


def pays(who: str, redis: Any) -> int:
    """Each message goes to one consumer."""
    if not (got := redis.xreadgroup("tellers", who, {"payments": ">"}, count=1)):
        return 0
    [(number, message)] = next(iter(got.values()))[0] if isinstance(got, dict) else got[0][1]
    redis.incrby("paid", int(message[b"amount"]))
    redis.xack("payments", "tellers", number)
    return int(message[b"amount"])


def pays_without_a_group(who: str, redis: Any) -> int:
    """It looks which message is there, and takes it away."""
    if not (found := redis.xrange("payments", count=1)):
        return 0
    [(number, message)] = found
    redis.incrby("paid", int(message[b"amount"]))
    redis.xdel("payments", number)
    return int(message[b"amount"])


@pytest.mark.parametrize(("operation", "verdict"), [(pays, "kept"), (pays_without_a_group, "violated")])
def test_a_message_is_paid_once(trial: Trial, operation: Callable[..., int], verdict: str) -> None:
    """DUMP holds when a message was delivered, so no two schedules came to the same: each was violated."""
    result = trial([(operation, "Ann"), (operation, "Bob")], setup=payments, control=False)
    assert result.verdict == verdict
