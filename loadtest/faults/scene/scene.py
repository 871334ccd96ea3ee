"""One cell as it happens: the workers, the gate, and what is seen of the lock.

crowd      three workers post at once: whoever keeps no order loses here (the control must); who claims to keep
           one posts less often here, for all the cells there are to show otherwise
victim     one worker is let in, and stands between read and write: it holds what its strategy holds
strike     the hazard happens to it, to the lock, or to a server
rivals     two workers want the same account
settle     the victim, if it lives, goes on; everybody has until the deadline
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
from loadtest.faults.workers.crew import Dead, Pool, Worker
from loadtest.history import calls as history
from loadtest.verdict.evidence import Doubt, Stall
from loadtest.verdict.stall import longest_stall

CROWD, POSTINGS, FEW, THINK = 3, 6, 2, (0.001, 0.004)
RIVALS, AFTER = 2, 2
#: seconds within which a live worker must get on, beyond the lease
PATIENCE = 4.0
ENTER = 12.0
#: seconds; of those to whom nothing is done: a slow machine must not end their leases
EASY_LEASE = 10.0
#: seconds: who is not done then waits for something other than a lease
CROWD_DONE = EASY_LEASE + 1.0
#: seconds that a lease of its own is waited for
LONGEST_LEASE = 12.0
LATE = "the others had not begun to want the account when the hazard was over"
STUCK = "under contention alone workers did not get on"


@dataclass
class Scene(Record):
    """`lease`: seconds, as the book has it."""

    book: Book
    site: Site
    pool: Pool
    folder: Path
    lease: float
    seed: int
    withdraws: bool = False
    stall: Stall | None = None
    deadline: float = PATIENCE
    #: how many leases may end, one after the other, before every worker must make progress
    leases: int = 2
    workers: list[Worker] = field(default_factory=list)
    struck: set[Worker] = field(default_factory=set)
    #: workers that stood between read and write
    inside: set[str] = field(default_factory=set)
    rivals: list[Worker] = field(default_factory=list)
    #: keys of the calls that were answered before the hazard
    before: frozenset[str] = frozenset()
    #: who lived and had no answer when everybody's time was over, and when that was, in seconds since the epoch
    waiting: set[str] = field(default_factory=set)
    settled: float = 0.0
    #: seconds that the crowd took, 3 at most: how fast the machine is today
    pace: float = 0.0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)  # noqa: S311  (no secret)
        self._log = self.site.postgres.log.stat().st_size
        self.guard = LeaseGuard(self.site, str(self.book.pk), self.lease)

    @property
    def enough(self) -> float:
        """Seconds within which everybody who lives must get on, from now: a lock that was taken for longer than the
        book says (a stranger's, with a lease of its own) has that time."""
        return self.deadline + max(self.leases * self.lease, self.longest_lease())

    def hazard_comes(self) -> None:
        """What was answered up to now says nothing about the hazard."""
        self.before = frozenset(each.key for each in history.read(self.folder).calls if each.answered)

    # -- workers -------------------------------------------------------------------------------------------

    def hire(self, pool: Pool | None = None, env: Mapping[str, str] | None = None, kind: str = "") -> Worker:
        """`pool`, `env`: of a worker that is not as the others of the cell (its clock, its way to the servers).
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
        """Let all workers want the account at once; nothing else goes wrong."""
        with self.pool.turn:  # this needs the processor; what comes later mostly waits
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
        self.note(f"{CROWD} workers posted {postings} times each, {len(late)} of them not to the end")
        if late:
            self.stall = Stall(STUCK, time.monotonic() - begin)

    def victim(self, patience: float = ENTER, worker: Worker | None = None) -> Worker | None:
        """Let one worker in. None if it does not get there (it is noted)."""
        worker = worker or self.hire()
        self.struck.add(worker)
        worker.begins("post", 1, THINK, self.lease, True)
        with suppress(Dead):
            if (heard := worker.hears(patience)) and heard[0] == "inside":
                self.inside.add(f"worker {worker.pid}")
                self.guard.watch(worker)
                self.note(f"worker {worker.pid} has read and not written; {self.held(worker)}")
                return worker
        self.note(f"worker {worker.pid} did not come to stand between read and write: {worker.answer}")
        if worker.busy:  # it is late: when it comes, it need not wait for us
            with suppress(OSError):
                worker.tells("go")
        return None

    def turned_away(self, worker: Worker) -> str:
        """Return how its last posting was refused because a lock or a server was not available; "" if it was not."""
        own = [each for each in history.read(self.folder).calls if each.worker == f"worker {worker.pid}"]
        return f"not granted ({own[-1].error})" if own and own[-1].busy else ""

    def posts(self, worker: Worker, count: int = 1) -> bool:
        """Let this worker post, under the short lease. Waits until it has begun. Has it?"""
        worker.begins("post", count, THINK, self.lease, False)
        return self.begun([worker])

    def rush(self, count: int = RIVALS) -> list[Worker]:
        """Let rivals want the account. Waits until they have begun, not for what comes of it."""
        while len(self.rivals) < count:
            self.rivals.append(self.hire())
        for worker in self.rivals[:count]:
            if worker.busy:  # it waits since an earlier rush
                continue
            worker.begins("post", AFTER, THINK, EASY_LEASE, False)
        if self.begun(self.rivals[:count]):
            self.note(f"{count} other workers want the account")
        else:
            self.doubts.append(Doubt(LATE, "run it again on a quieter machine"))
        return self.rivals[:count]

    def begun(self, workers: list[Worker], seconds: float = 3.0) -> bool:
        """Wait until each has begun to post, by its own journal: on a slow machine an order takes its time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            open_calls = {each.worker for each in history.read(self.folder).calls if not each.answered}
            if all(f"worker {each.pid}" in open_calls or each.finishes(0.0) for each in workers):
                return True
            time.sleep(0.01)
        return False

    def wait(self, workers: list[Worker], seconds: float) -> bool:
        """Wait for the ends of their orders. False: time is over."""
        until = time.monotonic() + seconds
        late = [each for each in workers if not each.finishes(until)]
        self.note(f"after {seconds:.1f} s the others still wait" if late else "the others are done")
        return not late

    def ahead(self, seconds: float) -> bool:
        """Let rivals want the account, and give them `seconds` before the struck worker goes on; more if the machine
        is slow. True: they are done, as they can only be if nothing keeps them out."""
        return self.wait(self.rush(), max(seconds, self.pace))

    def go_on(self, worker: Worker, *, outlasts: bool = False) -> None:
        """`outlasts`: also after its lease, as the hazard has it. Else it leaves without a write if by our own slowness
        that is nearly over: what came then would be an overrun."""
        self.note(f"worker {worker.pid} goes on and writes")
        limit = None if outlasts else self.guard.limit(worker)
        with suppress(OSError):
            worker.tells("go", *(() if limit is None else (limit,)))

    def settle(self) -> None:
        """Give every live worker until the deadline; then end them."""
        begin = time.monotonic()
        until = begin + self.enough
        late = [each for each in self.workers if each.busy and not each.finishes(until)]
        self.settled, self.waiting = time.time(), {f"worker {each.pid}" for each in late}
        if late and self.stall is None:
            told = f"{len(late)} live workers got no answer though nobody was inside any more"
            self.stall = Stall(told, time.monotonic() - begin)
            self.note(told)
        elif not late:
            self.note("all live workers had their answers")

    def leave(self) -> None:
        for worker in self.workers:
            # the threads that it has begun would go on asking servers that end with the cell
            begun = isinstance(worker.answer, dict) and worker.answer.get("threads")
            self.pool.give_back(worker, clean=worker not in self.struck and not (self.site.env and begun))

    # -- what is seen --------------------------------------------------------------------------------------

    def keys(self, balances: bool = False) -> dict[str, str]:
        return sight.keys(self.site, str(self.book.pk), balances)

    def held(self, worker: Worker) -> str:
        """Return what the servers show that the worker holds."""
        return sight.held(self.site, str(self.book.pk), (worker.inside or {}).get("session"))

    def deadlocks(self) -> int:
        """Return how often the database broke a deadlock of this cell."""
        return sight.deadlocks(self.site.postgres.log, self._log, str(self.book.pk))

    def longest_lease(self) -> float:
        """Seconds until the lock can be over: the scaled lease, or what a stranger's lock has set."""
        seen = sight.leases(self.site, str(self.book.pk))
        return max([self.lease, *(min(each, LONGEST_LEASE) for each in seen)])

    def standstill(self) -> Stall | None:
        """Return the longest time since the hazard in which a live worker waited and none was served."""
        since = (each for each in history.read(self.folder).calls if each.key not in self.before)
        calls = [each for each in since if each.answered or each.worker in self.waiting]
        return longest_stall(calls, 0.0, self.settled if self.waiting else None)
