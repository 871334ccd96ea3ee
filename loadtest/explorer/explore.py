"""One job, explored in this process on the servers that its settings name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pkgutil import resolve_name
from time import perf_counter
from typing import Any

from django.conf import settings

from ledger.strategies import Locked, Strategy, find
from loadtest.explorer.confirm import confirming
from loadtest.explorer.cores import keep_sessions_here
from loadtest.explorer.counterexample import counterexample, counterexamples
from loadtest.explorer.graph import Graphing, packed
from loadtest.explorer.restore import (
    contents_sql,
    drop_indexes,
    drop_own_tables,
    indexes,
    mariadb_server,
    own_tables,
)
from loadtest.explorer.system import LedgerSystem
from loadtest.findings.explored import HAZARD_OF, Explored, explored
from loadtest.findings.gloss import Gloss
from loadtest.findings.job import BREACH_WORDS, EXHAUSTED, Job
from loadtest.trials.dependencies import parameters
from loadtest.verdict.words import Word
from loadtest.workloads import EXPLORED, Turns
from lost_update_lab.gates.disk import Files
from lost_update_lab.harness import Harness
from lost_update_lab.harness.play import play
from lost_update_lab.model.bounds import Bounds, Fault
from lost_update_lab.replay.annotate import witnessed
from lost_update_lab.runs import modules
from lost_update_lab.runs.memory import Memory
from lost_update_lab.runs.place import beside
from lost_update_lab.runs.plain_state import places
from lost_update_lab.schedule.schedule_id import Diverged, exactly
from lost_update_lab.search.poll_calibration import calibrate_polls
from lost_update_lab.search.search import Search
from lost_update_lab.servers.mariadb.server import MariaDBServer
from lost_update_lab.servers.postgres import ddl
from lost_update_lab.servers.postgres.server import PostgresServer
from lost_update_lab.servers.redis.server import RedisServer

#: the least seconds between two polls of a waiter: longer than the slack, or a poll would always be due. A poll of a
#: lock table, or of several servers, is five commands and more
POLL, DEAR_POLL = 1.0, 5.0
TOO_LATE = "it makes a table, or an index, in the middle of the search, which is not put back: {names}"
AT_ONCE = "make it when the lock is first called, or in a migration"
#: the most polls in a lease. At each poll of one waiter another may begin, so with more than two workers a single poll
#: has to do
LOOKS, LOOKS_OF_MORE = 10, 1


def explore(job: Job) -> Explored:
    """A lock that makes a table only when it has to wait is explored again, with that table, in what is left of the
    budget: its rows belong to each state, and were not put back."""
    begun, bounds = perf_counter(), job.bounds
    for late in (False, True):
        with harness_of(job, bounds=bounds, late=late) as harness:
            search, there, indexed = Search(harness, _unclaimed(job)), own_tables(), indexes()
            result = search.explore()
            made, newer = set(own_tables()) - set(there), indexes() - indexed
            if late or not made:
                if made | newer:
                    result.exhausted, result.remedy = False, AT_ONCE
                    result.cause = TOO_LATE.format(names=", ".join(sorted(made or newer)))
                    result.decided.clear()
                shown = counterexamples(job, harness, search, _gloss(harness))
                return explored(job, result, _system(harness).acknowledged, shown)
            bounds = bounds.again(begun)
    raise AssertionError("the second search is the last one")


def _unclaimed(job: Job) -> frozenset[Fault]:
    if job.until == EXHAUSTED:
        return frozenset()
    return frozenset(fault for fault, hazard in HAZARD_OF.items() if fault and hazard not in job.claims)


def graph(job: Job) -> dict[str, Any]:
    """Return every position of the job's schedules (graph.py)."""
    by_real_code = replace(job.bounds, recorded=False, in_memory=False)
    with harness_of(job, bounds=by_real_code) as harness:
        walk = Graphing(harness, _gloss(harness))
        result = walk.explore()
        if not result.exhausted:
            raise RuntimeError(f"not every position was reached: {result.cause}")
        return packed(walk, strategy=job.strategy, title=find(job.strategy).title, bounds=job.as_json())


def replay(job: Job) -> dict[str, Any]:
    """Repeat the job's schedule. Returns `{"verdict", "counterexample", "reproduced"}`."""
    for late in (False, True):
        with harness_of(job, late=late) as harness:
            there, found = own_tables(), _replayed(job, harness)
            if not found["reproduced"] and not harness.looks:
                harness.known_to_look = True  # the search may have seen late that a worker looks at a clock
                again = _replayed(job, harness)
                found = again if again["reproduced"] else found
            if (
                found["reproduced"] or own_tables() == there
            ):  # else the search had a table that was made later
                return found
    return found


def _replayed(job: Job, harness: Harness) -> dict[str, Any]:
    try:
        watched = calibrate_polls(harness)
        found, _ = play(harness, watched, exactly(job.choices or ()))
        found = witnessed(harness, watched, found)
    except Diverged as error:
        return _not_the_same(f"another schedule here: {error}")
    broken = found.word in BREACH_WORDS.values()
    name = job.replay_id(found.word, found.choices) if broken else ""
    shown = counterexample(name, found, 1, _gloss(harness))
    if not broken:
        return {**_not_the_same("this schedule breaks no law here"), "counterexample": shown}
    return {"verdict": found.word, "reproduced": found.word == job.expected, "counterexample": shown}


def _not_the_same(cause: str) -> dict[str, Any]:
    return {"verdict": str(Word.INCONCLUSIVE), "reproduced": False, "cause": cause}


def _system(harness: Harness) -> LedgerSystem:
    assert isinstance(harness.system, LedgerSystem)
    return harness.system


def _gloss(harness: Harness) -> Gloss:
    return Gloss(str(_system(harness).book.pk))


def _addresses(strategy: type[Strategy]) -> dict[str, str]:
    """Return the Redis servers that the strategy may use. Only a lock on several servers gets several, and a strategy
    that is handed in, whose clients nobody knows."""
    urls = {"redis": os.environ["REDIS_URL"]}
    unknown = ":" in strategy.slug and not issubclass(strategy, Locked)
    if not unknown and "redis_nodes" not in parameters(strategy.slug):
        return urls
    return urls | {f"redis-{number}": url for number, url in enumerate(settings.REDIS_NODES, 1)}


def patience(strategy: type[Strategy], workers: int) -> dict[str, Any]:
    """Return settings of the book. Waiters wait longer than the longest lease, so a lock with a shorter wait time
    gets a shorter lease. They poll so rarely that time moves on between two polls. The schedule decides when they
    poll."""
    known = parameters(strategy.slug)
    wait, lease, poll = (known[n].default if n in known else None for n in ("wait", "lease", "poll"))
    if getattr(strategy, "nowait", False):  # its attempts are its polls
        return {"backoff": [POLL, POLL]}
    found = {}
    if isinstance(wait, float) and isinstance(lease, float) and wait <= lease:
        found["lease"] = lease = wait / 3
    if isinstance(poll, float):
        least = DEAR_POLL if {"sql", "redis_nodes"} & known.keys() else POLL
        most = LOOKS if workers <= 2 else LOOKS_OF_MORE
        found["poll"] = max(poll, least, lease / most if isinstance(lease, float) else 0.0)
    return found


@contextmanager
def harness_of(
    job: Job,
    turns: Turns | None = None,
    bounds: Bounds | None = None,
    late: bool = False,
    **given: Any,
) -> Iterator[Harness]:
    """A harness for this job. `turns`, `bounds`: those that no command offers. `given`: settings of the book. A lock
    that makes a table of its own has made it in the first schedule, or `late`: in the search before. Then its rows are
    a part of each state."""
    if not late:
        drop_own_tables()
    before = indexes()
    try:
        while True:
            known = own_tables(), indexes()
            with _opened(job, turns, bounds, **given) as harness:
                if (own_tables(), indexes()) == known:
                    yield harness
                    return
    finally:
        drop_indexes(indexes() - before)


@contextmanager
def _opened(job: Job, turns: Turns | None, bounds: Bounds | None, **given: Any) -> Iterator[Harness]:
    strategy, turns = find(job.strategy), turns or EXPLORED[job.workload]
    urls = _addresses(strategy)
    values = {"think": [job.work / 1000, job.work / 1000], **patience(strategy, job.workers), **given}
    system = LedgerSystem(job, turns, values, urls)
    servers: list[PostgresServer | RedisServer | MariaDBServer | Files] = [
        PostgresServer(
            os.environ["DATABASE_URL"],
            contents_sql(system.database),
            besides=True,
            opening=system.database,
            # what is handed in. Of the lab's own, every command is known; the ledger's triggers would make each of
            # their writes one that looks, which takes a third more schedules and finds nothing
            may_make=ddl.TABLES if ":" in job.strategy else None,
        )
    ]
    servers += [RedisServer(url, name) for name, url in urls.items()]
    servers += [Files()] if job.one_machine else []
    if job.where == "mariadb":
        system.mariadb = mariadb_server(looks=":" in job.strategy)
        servers.append(system.mariadb)
    gates = [*system.patches, *map(resolve_name, job.gates)]
    try:
        with (
            Harness(system, servers, bounds or job.bounds, gates) as harness,
            confirming(harness, int(os.environ["REDIS_PORT"])),
        ):
            keep_sessions_here()
            if ":" in job.strategy:  # what is handed in: the lab's own are begun anew (system.py)
                root = job.strategy.partition(":")[0].partition(".")[0]
                # beside: to ask where a module lies asks for a file, and on one machine files have gates
                plain = beside()(lambda: places(modules.own_modules(root)))
                harness.memory = Memory(beside()(partial(modules.state, root)), plain)
            yield harness
    finally:
        for server in servers:
            server.close()
        system.close()
