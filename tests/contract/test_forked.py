"""A process forked inside a section is not inside: the lock that it copied is its parent's."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from locks import LOCKS, LockNotHeld
from tests.contract.arena import Arena
from tests.contract.site import UNHURRIED

ONE_HOLDING = "token compare-and-delete semaphore redlock replicated durable token-pubsub token-queue fenced"
ADAPTED = "redis-py django-redis python-redis-lock"


def refused(use: Callable[[], Any]) -> bool:
    try:
        use()
    except LockNotHeld:
        return True
    return False


@pytest.mark.parametrize("slug", [*ONE_HOLDING.split(), *ADAPTED.split()])
def test_a_forked_child_holds_nothing(arena: Arena, slug: str) -> None:
    with arena.fight(LOCKS[slug], lease=UNHURRIED) as fight:
        lock = fight.holder().lock
        child = os.fork()
        if not child:
            try:
                refuses = refused(lock.release) and refused(lock.extend)
                os._exit(not refuses or lock.held or lock.acquire(timeout=0))
            finally:
                os._exit(2)
        told = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        fight.closed("a forked child released its parent's lock")
        assert not told, "the child believes that it holds it"
        assert lock.held
        lock.release()
