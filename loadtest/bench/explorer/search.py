"""One case under our explorer. Nothing of Django: processes of their own run this too (cores.py)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from loadtest.bench.explorer.cases import Case
from loadtest.bench.explorer.subject import CONTENTS, CaseSubject
from lost_update_lab.harness import Stage
from lost_update_lab.model.bounds import SECOND, Bounds, Reduction
from lost_update_lab.replay.schedule_id import exactly
from lost_update_lab.servers.postgres.server import PostgresServer
from lost_update_lab.servers.redis.server import RedisServer

#: as `manage.py explore` searches
FULL = {"reduction": Reduction.FULL, "recorded": True}
#: with neither reduction nor recording: each schedule by real code, as a peer does
REAL = {"reduction": Reduction.NONE, "recorded": False, "followed": True}
#: no reduction either; what workers are known to do is sent again without them
PLAYED = {"reduction": Reduction.NONE, "recorded": True}


@contextmanager
def stage_for(
    case: Case, database: str, redis_url: str, how: dict[str, Any], budget: float = 60.0
) -> Iterator[Stage]:
    """Everything is connected, as a peer's clients are before its search: one schedule was executed."""
    subject = CaseSubject(case, database, redis_url)
    servers: list[PostgresServer | RedisServer] = [PostgresServer(database, CONTENTS), RedisServer(redis_url)]
    bounds = Bounds(workers=len(case.amounts), faults=0, patience=SECOND, budget=budget, **how)
    try:
        with Stage(subject, servers, bounds) as stage:
            stage.run(exactly(()), {})
            yield stage
    finally:
        for server in servers:
            server.close()
        subject.close()
