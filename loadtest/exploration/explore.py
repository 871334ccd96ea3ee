"""One job, explored in this process on the servers that its settings name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from ledger.strategies import find
from loadtest.exploration.clients import OwnClients
from loadtest.exploration.confirm import confirming
from loadtest.exploration.findings import HAZARDS, counterexample, finding
from loadtest.exploration.gloss import Gloss
from loadtest.exploration.job import Job
from loadtest.exploration.restore import contents_sql
from loadtest.exploration.subject import LedgerSubject
from loadtest.exploration.workloads import WORKLOADS
from loadtest.explorer.replay import Diverged, exactly, play
from loadtest.explorer.result import Found, Result
from loadtest.explorer.search import Search
from loadtest.explorer.servers.base import Server
from loadtest.explorer.servers.postgres import PostgresServer
from loadtest.explorer.servers.redis import RedisServer
from loadtest.explorer.shrink import confirmed, shrink
from loadtest.explorer.stage import Stage
from loadtest.explorer.waiters import watch_waiters
from loadtest.explorer.witness import witnessed


def explore(job: Job) -> dict[str, Any]:
    """Return the object of explore.json; for a replay `{"verdict", "counterexample", "reproduced"}`."""
    with _stage(job) as stage, confirming(stage, int(os.environ["REDIS_PORT"])):
        if job.choices is not None:
            return _replay(job, stage)
        search = Search(stage)
        result = search.explore()
        if result.exhausted and not _subject(stage).acknowledged:
            result.exhausted, result.cause = False, "no operation was acknowledged in any schedule"
            result.remedy = "look at the errors of the workers"
        shown = {
            str(HAZARDS[fault]): _confirmed(stage, search, found)
            for fault, found in _worth_showing(result).items()
        }
        return finding(job, result, shown, _gloss(stage))


def _replay(job: Job, stage: Stage) -> dict[str, Any]:
    try:
        watched = watch_waiters(stage)
        found, _ = play(stage, watched, exactly(job.choices or ()))
        found = replace(found, states=witnessed(stage, watched, found))
    except Diverged as error:
        return {"verdict": "inconclusive", "reproduced": False, "cause": f"another schedule here: {error}"}
    return {
        "verdict": found.verdict,
        "reproduced": found.verdict == job.expected,
        "counterexample": counterexample(job, found, 1, _gloss(stage)),
    }


def _subject(stage: Stage) -> LedgerSubject:
    assert isinstance(stage.subject, LedgerSubject)
    return stage.subject


def _gloss(stage: Stage) -> Gloss:
    return Gloss(str(_subject(stage).book.pk))


def _worth_showing(result: Result) -> dict[Any, Found]:
    """The smallest counterexample under each fault alone, and of the gravest verdict."""
    found = {}
    for fault in HAZARDS:
        word = result.under(fault)
        if fault and word == result.under(None):
            continue  # it needs no fault
        if word not in ("kept", "inconclusive") and (smallest := result.smallest(word, fault)):
            found[fault] = smallest
    return found


def _confirmed(stage: Stage, search: Search, found: Found) -> tuple[Found, int]:
    small = shrink(stage, search.watched, found)
    times = confirmed(stage, search.watched, small)
    return replace(small, states=witnessed(stage, search.watched, small)), times


@contextmanager
def _stage(job: Job) -> Iterator[Stage]:
    strategy, workload = find(job.strategy), WORKLOADS[job.workload]
    store = "postgres" if "postgres" in strategy.stores else strategy.stores[0]
    urls = {"redis": os.environ["REDIS_URL"]}
    urls |= {f"redis-{number}": url for number, url in enumerate(settings.REDIS_NODES, 1)}
    nodes = {name: redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0)) for name, url in urls.items()}
    think = [job.work / 1000, job.work / 1000]
    clients = OwnClients()
    subject = LedgerSubject(job.strategy, workload, store, {"think": think}, nodes, clients)
    servers: list[Server] = [PostgresServer(os.environ["DATABASE_URL"], contents_sql())]
    servers += [RedisServer(url, name) for name, url in urls.items()]
    try:
        with Stage(subject, servers, job.bounds, [clients.install]) as stage:
            yield stage
    finally:
        for server in servers:
            server.close()
        for node in nodes.values():
            node.close()
