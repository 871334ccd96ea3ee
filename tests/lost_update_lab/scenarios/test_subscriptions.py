"""A look at a subscription that does not wait: what comes just before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lost_update_lab import Result, worker
from lost_update_lab.under_test.operations import VIOLATED

Trial = Callable[..., Result]


@contextmanager
def listening(redis: Any) -> Iterator[Any]:
    with redis.pubsub(ignore_subscribe_messages=True) as messages:
        messages.subscribe("go")
        messages.get_message(timeout=1)
        yield messages


def reads_then_looks(redis: Any) -> tuple[bool, bool]:
    with listening(redis) as messages:
        done = redis.get("done") is not None
        return done, messages.get_message() is not None


def is_done(redis: Any) -> None:
    redis.set("done", 1)
    redis.publish("go", 1)


def test_a_message_may_come_just_before_a_look(trial: Trial) -> None:
    workers = [worker("Ann", reads_then_looks), worker("Bob", is_done)]
    result = trial(workers, invariant=lambda ann, bob: ann != (False, True), control=False)
    assert (result.verdict, result.exhausted) == (VIOLATED, True), str(result)
