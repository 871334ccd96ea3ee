"""One cell as it happens: the workers, the gate, what is seen of the lock, and the timeline.

crowd      three workers post at once: whoever keeps no order loses here (the control must)
victim     one worker is let in, and stands between read and write: it holds what its strategy holds
strike     the hazard happens to it, to the lock, or to a server
rivals     two workers want the same account
settle     the victim, if it lives, goes on; everybody has until the deadline
"""

from __future__ import annotations

import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import connection
from redis.exceptions import RedisError

from ledger.models import Book
from loadtest.evidence import Stall
from loadtest.faults.crew import Dead, Pool, Worker
from loadtest.faults.site import Site

CROWD, POSTINGS, THINK = 3, 8, (0.001, 0.004)
RIVALS, AFTER = 2, 2
#: seconds within which a live worker must get on, beyond the lease
PATIENCE = 4.0
ENTER = 8.0
#: seconds; of those to whom nothing is done: a slow machine must not end their leases
EASY_LEASE = 5.0


@dataclass
class Scene:
    """`lease`: seconds, as the book has it. `proof`: the evidence that the hazard fired; "" until then."""

    book: Book
    site: Site
    pool: Pool
    folder: Path
    lease: float
    seed: int
    proof: str = ""
    cannot: str = ""
    stall: Stall | None = None
    unfinished: int = 0
    deadline: float = PATIENCE
    timeline: list[dict[str, Any]] = field(default_factory=list)
    workers: list[Worker] = field(default_factory=list)
    struck: set[Worker] = field(default_factory=set)
    rivals: list[Worker] = field(default_factory=list)
    victims: list[Worker] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)  # noqa: S311  (no secret)

    def note(self, told: str) -> None:
        self.timeline.append({"at": round(time.monotonic() - self.began, 3), "what": told})

    def prove(self, told: str) -> None:
        """The hazard fired, and this was seen of it."""
        self.note(told)
        self.proof = f"{self.proof}; {told}" if self.proof else told

    # -- workers -------------------------------------------------------------------------------------------

    def hire(self) -> Worker:
        worker = self.pool.hire()
        self.workers.append(worker)
        worker.asks(
            "book", str(self.book.pk), str(self.folder), self.site.env, self.site.sentinels, self.seed
        )
        return worker

    def crowd(self) -> None:
        """Everybody wants the account at once; nothing goes wrong but that."""
        while len(self.rivals) < CROWD:
            self.rivals.append(self.hire())
        at = time.time() + 0.02
        for worker in self.rivals:
            worker.begins("post", POSTINGS, THINK, EASY_LEASE, False, at)
        until = time.monotonic() + 15 + self.lease
        late = [each for each in self.rivals if not each.finishes(until)]
        self.note(f"{CROWD} workers posted {POSTINGS} times each, {len(late)} of them not to the end")
        if late:
            self.stall = Stall("under contention alone workers did not get on", 15 + self.lease)

    def victim(self) -> Worker | None:
        """Let one worker in. None if it does not get there (it is noted)."""
        worker = self.hire()
        self.victims.append(worker)
        self.struck.add(worker)
        worker.begins("post", 1, THINK, self.lease, True)
        with suppress(Dead):
            if (heard := worker.hears(ENTER + self.lease)) and heard[0] == "inside":
                self.note(f"worker {worker.pid} has read and not written; {self.held(worker)}")
                return worker
        self.note(f"worker {worker.pid} did not come to stand between read and write: {worker.answer}")
        return None

    def posts(self, worker: Worker) -> None:
        """Let this worker post once, under the short lease. Does not wait for it."""
        worker.begins("post", 1, THINK, self.lease, False)

    def rush(self, count: int = RIVALS) -> list[Worker]:
        """Let rivals want the account. Does not wait for them."""
        while len(self.rivals) < count:
            self.rivals.append(self.hire())
        for worker in self.rivals[:count]:
            worker.begins("post", AFTER, THINK, EASY_LEASE, False)
        self.note(f"{count} other workers want the account")
        return self.rivals[:count]

    def wait(self, workers: list[Worker], seconds: float) -> bool:
        """Wait for the ends of their orders. False: time is over."""
        until = time.monotonic() + seconds
        done = all(each.finishes(until) for each in workers)
        self.note("the others are done" if done else f"after {seconds:.1f} s the others still wait")
        return done

    def go_on(self, worker: Worker) -> None:
        self.note(f"worker {worker.pid} goes on and writes")
        worker.tells("go")

    def settle(self) -> None:
        """Everybody who lives has until the deadline; then they are ended."""
        begin = time.monotonic()
        until = begin + self.deadline + 2 * self.lease
        late = [each for each in self.workers if each.busy and not each.finishes(until)]
        if late and self.stall is None:
            told = f"{len(late)} live workers got no answer though nobody was inside any more"
            self.stall = Stall(told, time.monotonic() - begin)
            self.note(told)
        elif not late:
            self.note("all live workers had their answers")

    def leave(self) -> None:
        for worker in self.workers:
            self.pool.give_back(worker, clean=worker not in self.struck and not self.site.env)

    # -- what is seen --------------------------------------------------------------------------------------

    def keys(self, balances: bool = False) -> dict[str, str]:
        """Return the keys of the book's locks (and of its balances), with value and time to live, as the servers
        have them now."""
        found = {}
        for number, server in enumerate(self.site.valkeys()):
            with suppress(RedisError), server.client(socket_timeout=2) as client:
                for key in sorted(client.scan_iter(f"*{self.book.pk}*", count=1000)):
                    name = key.decode(errors="replace")
                    if balances or not name.startswith("ledger:"):
                        where = f" on node {number}" if number else ""
                        found[name + where] = f"{_value(client, key)}, PTTL {client.pttl(key)} ms"
        return found

    def held(self, worker: Worker) -> str:
        """Return what the worker is seen to hold: keys in Valkey, a transaction in PostgreSQL."""
        told = [f"{name.replace(str(self.book.pk), 'book')} = {what}" for name, what in self.keys().items()]
        session = (worker.inside or {}).get("session")
        if session:
            with connection.cursor() as cursor:
                cursor.execute(
                    "SELECT state, (SELECT count(*) FROM pg_locks l WHERE l.pid = a.pid AND l.granted"
                    " AND l.mode IN ('RowShareLock', 'RowExclusiveLock', 'ExclusiveLock'))"
                    " FROM pg_stat_activity a WHERE pid = %s",
                    [session],
                )
                row = cursor.fetchone()
            if row and row[0] != "idle":
                told.append(f"PostgreSQL session {session} is {row[0]}, {row[1]} locks")
        return "held: " + "; ".join(told[:4]) if told else "it holds nothing on a server"

    def longest_lease(self) -> float:
        """Seconds until the lock can be over: the scaled lease, or what a stranger's lock has set."""
        waits = [self.lease]
        for what in self.keys().values():
            left = int(what.rpartition("PTTL ")[2].split()[0])
            waits.append(min(left / 1000, 12.0) if left > 0 else 0.0)
        return max(waits)


def _value(client: Any, key: bytes) -> str:
    kind = client.type(key).decode()
    if kind == "string":
        return (client.get(key) or b"").decode(errors="replace")[:40]
    if kind == "hash":
        return str({k.decode(): v.decode(errors="replace")[:40] for k, v in client.hgetall(key).items()})[:80]
    return f"a {kind}"
