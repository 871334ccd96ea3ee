"""One case under our explorer. It uses no Django, because other processes run it too (cores.py)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from loadtest.bench.explorer.cases import SearchCase
from loadtest.bench.explorer.system import CONTENTS, CaseSystem
from loadtest.bench.measured import Row
from lost_update_lab.harness import Harness
from lost_update_lab.model.bounds import SECOND, Bounds, Reduction
from lost_update_lab.model.system import UNBROKEN, Ending
from lost_update_lab.scenarios.result import INCONCLUSIVE, KEPT
from lost_update_lab.schedule.schedule_id import exactly
from lost_update_lab.servers.postgres.server import PostgresServer
from lost_update_lab.servers.redis.server import RedisServer

#: the search of `manage.py explore`
FULL = {"reduction": Reduction.FULL, "recorded": True}
#: without reduction and recording: each schedule by real code, as a peer does
REAL = {"reduction": Reduction.NONE, "recorded": False}
#: without reduction, but replayed from the recording: known commands are sent without the workers' code
PLAYED = {"reduction": Reduction.NONE, "recorded": True}


PLAIN = 0.5  # seconds


def rates(schedules: int, steps: int | None, seconds: float) -> Row:
    """Return the figures of a search, ours or a peer's. `steps`: None if they are not counted."""
    return {
        "schedules": schedules,
        "seconds": round(seconds, 3),
        "schedules_per_s": round(schedules / seconds, 1),
        "steps_per_s": None if steps is None else round(steps / seconds, 1),
    }


def word_of(worst: str, exhausted: bool) -> str:
    """What a search found. One that was cut short has not shown that all is well."""
    if worst != UNBROKEN:
        return worst
    return KEPT if exhausted else INCONCLUSIVE


def plain_per_s(case: SearchCase, database: str, redis_url: str) -> float:
    """Return how often per second the workers of a case can do their work one after the other, without an explorer, but
    with the same reset and the same check at the end. No schedule by real code can be cheaper."""
    system, done = CaseSystem(case, database, redis_url), 0
    servers, workers = ("postgres", "redis"), range(len(case.amounts))
    try:
        began = time.perf_counter()
        while (passed := time.perf_counter() - began) < PLAIN or not done:
            system.reset(servers)
            endings = [Ending(str(index), system.work(index)) for index in workers]
            system.judge(endings, False, {})
            done += 1
    finally:
        system.leave(0)
        system.close()
    return done / passed


@contextmanager
def harness_for(
    case: SearchCase, database: str, redis_url: str, how: dict[str, Any], budget: float = 60.0
) -> Iterator[Harness]:
    """A harness in which one schedule has been executed: all clients are connected, as a peer's are before its
    search."""
    system = CaseSystem(case, database, redis_url)
    servers: list[PostgresServer | RedisServer] = [PostgresServer(database, CONTENTS), RedisServer(redis_url)]
    bounds = Bounds(workers=len(case.amounts), faults=0, patience=SECOND, budget=budget, **how)
    try:
        with Harness(system, servers, bounds) as harness:
            harness.until_known(partial(harness.run, exactly(()), {}))
            yield harness
    finally:
        for server in servers:
            server.close()
        system.close()
