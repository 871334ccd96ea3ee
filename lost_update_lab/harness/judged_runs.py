"""What runs came to. The system's judge is asked once about all that left the same behind."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.errors import REPORT_IT, BeginsAgain, Unanswered
from lost_update_lab.model.gaps import written
from lost_update_lab.model.server import Server
from lost_update_lab.model.system import (
    GAPS,
    LEASES,
    PASSED,
    Judgement,
    SystemUnderTest,
    leased,
    told_of,
)
from lost_update_lab.runs.in_memory_run import InMemoryRun
from lost_update_lab.schedule.world import World
from lost_update_lab.servers.redis.server import RedisServer


class JudgedRuns:
    """`tells_time`: the judge wants to know whether a clock has moved in a run."""

    def __init__(self, system: SystemUnderTest, servers: Mapping[str, Server]) -> None:
        self.system, self.servers, self.tells_time = system, servers, False
        self._known: dict[Hashable, Judgement] = {}

    def __call__(self, run: World) -> Judgement:
        """What the run came to. Raises Unanswered for an in-memory run if no executed one left the same behind."""
        endings, lasting = tuple(map(told_of, run.endings)), self._lasting()
        held = leased(run.leases(), run.now if lasting else None)
        passed = self.tells_time and (run.now > 0 or Fault.CLOCK_JUMP in run.spent)
        found = self._known.get(key := (run.shared(), held, run.gaps, passed, run.stuck, endings))
        if found is None:
            contents = {name: server.contents() for name, server in run.servers.items()} | {LEASES: held}
            contents |= {GAPS: written(run.gaps)} if run.gaps else {}
            contents |= {PASSED: b"1"} if passed else {}
            if isinstance(run, InMemoryRun) and not self.system.remembers(contents):
                raise Unanswered
            found = self.system.judge(run.endings, run.stuck, contents)
            if self._lasting() and not lasting:
                raise BeginsAgain("an invariant asks how long a lease lasts", REPORT_IT)
            self._known[key] = found
        return found

    def _lasting(self) -> bool:
        """Does an invariant ask how long leases last?"""
        return any(isinstance(each, RedisServer) and each.told_how_long for each in self.servers.values())
