"""One cell as it happens: the workers, the gate, and what is seen of the lock.

crowd      three workers post at once. A strategy that keeps no order loses here (the control must). A strategy that
           claims to keep order posts less often here, because every cell gives it another chance to fail
victim     one worker is let in, and stands between read and write: it holds what its strategy holds
strike     the hazard happens to it, to the lock, or to a server
rivals     two workers want the same account
settle     the victim, if it is alive, continues; all workers have until the deadline
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ledger.models import Book
from loadtest.faults.scene import sight
from loadtest.faults.scene.lease_guard import LeaseGuard
from loadtest.faults.scene.record import Record
from loadtest.faults.scene.site import Site
from loadtest.faults.workers.crew import CrewWorker, Dead, Pool
from loadtest.history import calls as history
from loadtest.verdict.evidence import Doubt, Stall
from loadtest.verdict.stall import longest_stall

CROWD, POSTINGS, FEW, THINK = 3, 6, 2, (0.001, 0.004)
RIVALS, AFTER = 2, 2
#: seconds within which a live worker must get on, beyond the lease
PATIENCE = 4.0
ENTER = 12.0
#: seconds; the lease of workers that no hazard strikes: a slow machine must not end it
EASY_LEASE = 10.0
#: seconds: a worker that has not finished by then waits for something other than a lease
CROWD_DONE = EASY_LEASE + 1.0
#: seconds: the longest lease of a lock's own that the judge waits for
LONGEST_LEASE = 12.0
LATE = "the other workers had not begun to want the account when the hazard was over"
STUCK = "under contention alone, workers made no progress"


@dataclass
class Scene(Record):
    """`lease`: the book's, in seconds."""

    book: Book
    site: Site
    pool: Pool
    folder: Path
    lease: float
    seed: int
    withdraws: bool = False
    stall: Stall | None = None
    deadline: float = PATIENCE
    #: how many leases may run out, one after the other, before every worker must make progress
    leases: int = 2
    workers: list[CrewWorker] = field(default_factory=list)
    struck: set[CrewWorker] = field(default_factory=set)
    #: … and those whose pulse is taken
    watched: set[CrewWorker] = field(default_factory=set)
    #: workers that stood between read and write
    inside: set[str] = field(default_factory=set)
    rivals: list[CrewWorker] = field(default_factory=list)
    #: keys of the calls that had their answer before the hazard
    before: frozenset[str] = frozenset()
    #: live workers without an answer at the deadline, and when that was, in seconds since the epoch
    waiting: set[str] = field(default_factory=set)
    settled: float = 0.0
    #: seconds that the crowd took, at most 3: a measure of how fast the machine is now
    pace: float = 0.0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)  # noqa: S311  (no secret)
        self._log = self.site.postgres.log.stat().st_size
        self.guard = LeaseGuard(self.site, str(self.book.pk), self.lease)

    @property
    def enough(self) -> float:
        """Seconds from now within which every live worker must make progress. If a lock's own lease is longer than the
        book's, it is granted that time."""
        return self.deadline + max(self.leases * self.lease, self.longest_lease())

    def hazard_comes(self) -> None:
        """The hazard comes now: answers up to here say nothing about it."""
        self.before = frozenset(each.key for each in history.read(self.folder).calls if each.answered)

    # -- workers -------------------------------------------------------------------------------------------

    def hire(
        self, pool: Pool | None = None, env: Mapping[str, str] | None = None, kind: str = ""
    ) -> CrewWorker:
        """`pool`, `env`: for a worker that differs from the cell's others (in its clock, or its path to the servers).
        `kind`: see Pool.hire."""
        worker = (pool or self.pool).hire(kind)
        self.workers.append(worker)
        way = {**self.site.env, **(env or {})}
        if pool or env:
            self.struck.add(worker)
        sentinels = [] if env and "REDIS_URL" in env else self.site.sentinels
        chances = self.seed, len(self.workers)
        worker.asks("book", str(self.book.pk), str(self.folder), way, sentinels, *chances, self.withdraws)
        return worker

    def crowd(self, postings: int = POSTINGS) -> None:
        """Let all workers want the account at once. Nothing else goes wrong."""
        with self.pool.turn:  # this part needs the processor; the later ones mostly wait
            while len(self.rivals) < CROWD:
                self.rivals.append(self.hire())
            at = time.time() + 0.02
            for worker in self.rivals:
                worker.begins("post", postings, THINK, EASY_LEASE, False, at)
            begin = time.monotonic()
            late = [each for each in self.rivals if not each.finishes(begin + 3)]
            self.pace = min(time.monotonic() - begin, 3.0)
        if late:
            until = begin + max(CROWD_DONE, self.longest_lease() + 1.0)
            late = [each for each in late if not each.finishes(until)]
        self.note(f"{CROWD} workers posted {postings} times each; {len(late)} of them did not finish")
        if late:
            self.stall = Stall(STUCK, time.monotonic() - begin)

    def victim(self, patience: float = ENTER, worker: CrewWorker | None = None) -> CrewWorker | None:
        """Let one worker in. None if it does not get inside; then a note says why."""
        worker = worker or self.hire()
        self.struck.add(worker)
        worker.begins("post", 1, THINK, self.lease, True)
        with suppress(Dead):
            if (heard := worker.hears(patience)) and heard[0] == "inside":
                self.inside.add(f"worker {worker.pid}")
                self.guard.watch(worker)
                self.note(f"worker {worker.pid} has read and not written; {self.held(worker)}")
                return worker
        self.note(f"worker {worker.pid} did not get between read and write: {worker.answer}")
        if worker.busy:  # it is late: once inside, it must not wait for the judge
            with suppress(OSError):
                worker.tells("go")
        return None

    def turned_away(self, worker: CrewWorker) -> str:
        """Return how its last posting was refused because a lock or a server was unavailable; "" if it was not."""
        own = [each for each in history.read(self.folder).calls if each.worker == f"worker {worker.pid}"]
        return f"not granted ({own[-1].error})" if own and own[-1].busy else ""

    def posts(self, worker: CrewWorker, count: int = 1) -> bool:
        """Let this worker post, under the short lease. Wait until it has begun; return whether it has."""
        worker.begins("post", count, THINK, self.lease, False)
        return self.begun([worker])

    def rush(self, count: int = RIVALS) -> list[CrewWorker]:
        """Let rivals want the account. Wait until they have begun, but not for their answers."""
        while len(self.rivals) < count:
            self.rivals.append(self.hire())
        for worker in self.rivals[:count]:
            if worker.busy:  # it has been waiting since an earlier rush
                continue
            worker.begins("post", AFTER, THINK, EASY_LEASE, False)
        if self.begun(self.rivals[:count]):
            self.note(f"{count} other workers want the account")
        else:
            self.doubts.append(Doubt(LATE, "run it again on a quieter machine"))
        return self.rivals[:count]

    def begun(self, workers: list[CrewWorker], seconds: float = 3.0) -> bool:
        """Wait until each has begun to post, by its own journal. On a slow machine an order takes a while."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            open_calls = {each.worker for each in history.read(self.folder).calls if not each.answered}
            if all(f"worker {each.pid}" in open_calls or each.finishes(0.0) for each in workers):
                return True
            time.sleep(0.01)
        return False

    def wait(self, workers: list[CrewWorker], seconds: float) -> bool:
        """Wait until they have finished their orders. False: not within `seconds`."""
        until = time.monotonic() + seconds
        late = [each for each in workers if not each.finishes(until)]
        self.note(
            f"after {seconds:.1f} s the other workers still wait" if late else "the other workers are done"
        )
        return not late

    def ahead(self, seconds: float) -> bool:
        """Let rivals want the account, and give them `seconds` (more if the machine is slow) before the struck worker
        continues. True: they are done, which is only possible if nothing keeps them out."""
        return self.wait(self.rush(), max(seconds, self.pace))

    def go_on(self, worker: CrewWorker, *, outlasts: bool = False) -> None:
        """Release the worker inside. `outlasts`: even after its lease, because the hazard wants that. Otherwise, if the
        judge's own slowness has nearly used up the lease, the worker leaves without a write: that write would be an
        overrun. So does a worker that should have renewed its lease, if the machine did not let it (`pulse`)."""
        self.note(f"worker {worker.pid} continues and writes")
        limit = None if outlasts else self.guard.limit(worker)
        most = self.guard.may_be_late(worker) if worker in self.watched else None
        with suppress(OSError):
            worker.tells("go", limit, most)

    def pulse(self, worker: CrewWorker) -> None:
        """From now on measure how punctual the worker inside is, if it has threads that could renew its lease."""
        if (worker.inside or {}).get("threads"):
            self.watched.add(worker)
            worker.tells("pulse")

    def settle(self) -> None:
        """Give every live worker until the deadline."""
        begin = time.monotonic()
        until = begin + self.enough
        late = [each for each in self.workers if each.busy and not each.finishes(until)]
        self.settled, self.waiting = time.time(), {f"worker {each.pid}" for each in late}
        if late and self.stall is None:
            told = f"{len(late)} live workers got no answer, although no worker was inside any more"
            self.stall = Stall(told, time.monotonic() - begin)
            self.note(told)
        elif not late:
            self.note("all live workers got their answers")

    def leave(self) -> None:
        for worker in self.workers:
            # threads that it has started would continue to use servers that end with the cell
            begun = isinstance(worker.answer, dict) and worker.answer.get("threads")
            self.pool.give_back(worker, clean=worker not in self.struck and not (self.site.env and begun))

    # -- what is seen --------------------------------------------------------------------------------------

    def keys(self, balances: bool = False) -> dict[str, str]:
        return sight.keys(self.site, str(self.book.pk), balances)

    def held(self, worker: CrewWorker) -> str:
        """Return what the worker holds, as the servers show it."""
        return sight.held(self.site, str(self.book.pk), (worker.inside or {}).get("session"))

    def deadlocks(self) -> int:
        """Return how many deadlocks of this cell the database broke."""
        return sight.deadlocks(self.site.postgres.log, self._log, str(self.book.pk))

    def longest_lease(self) -> float:
        """Return the seconds until the lock's lease is over: the scaled lease, or a longer one that the lock set."""
        seen = sight.leases(self.site, str(self.book.pk))
        return max([self.lease, *(min(each, LONGEST_LEASE) for each in seen)])

    def standstill(self) -> Stall | None:
        """Return the longest time since the hazard in which a live worker waited and none got an answer."""
        since = (each for each in history.read(self.folder).calls if each.key not in self.before)
        calls = [each for each in since if each.answered or each.worker in self.waiting]
        return longest_stall(calls, 0.0, self.settled if self.waiting else None)
