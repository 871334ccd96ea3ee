"""Locks that claim contention: three processes, each of whose sections reads a number and writes it back one higher.
Not one may be lost."""

from __future__ import annotations

from typing import Any

import pytest

from locks import LOCKS
from locks.hazards import Hazard
from tests.contract.arena import Arena
from tests.contract.site import UNHURRIED

PROCESSES, SECTIONS = 3, 12
CLAIMING = {slug: lock for slug, lock in LOCKS.items() if Hazard.CONTENTION in lock.withstands}


def _counted(arena: Arena, lock: Any) -> int:
    with arena.fight(lock, lease=UNHURRIED, poll=0.004) as fight:
        processes = [fight.process() for _ in range(PROCESSES)]
        counter = str(arena.main.socket), f"counter:{fight.name}:"
        for process in processes:
            process.begins("counts", *counter, SECTIONS, PROCESSES)
        for process in processes:
            process.answers()
        return int(arena.admins[0].get(counter[1]) or 0)


@pytest.mark.parametrize("slug", CLAIMING)
def test_nothing_is_lost(slug: str, arena: Arena) -> None:
    assert _counted(arena, LOCKS[slug]) == PROCESSES * SECTIONS


def test_the_count_can_tell(arena: Arena) -> None:
    """A lock that refuses no caller loses: each section waits 1 ms between its read and its write."""
    assert _counted(arena, LOCKS["hash-set"]) < PROCESSES * SECTIONS
