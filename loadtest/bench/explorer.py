"""`bench explorer`: schedules a second, what the reductions save, and the same small cases under frontrun.

All in one run on the same servers, case by case in turns; without a fault, because frontrun has none.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtest.bench import explorer_frontrun
from loadtest.bench.environments import NotInstalled, environment_for
from loadtest.bench.explorer_cases import CASES, Case
from loadtest.bench.explorer_subject import CONTENTS, CaseSubject
from loadtest.explorer.bounds import SECOND, Bounds, Reduction
from loadtest.explorer.replay import exactly, play
from loadtest.explorer.search import Search
from loadtest.explorer.servers.postgres import PostgresServer
from loadtest.explorer.servers.redis import RedisServer
from loadtest.explorer.stage import Stage
from loadtest.explorer.subject import UNBROKEN
from loadtest.servers import Postgres, Valkey

Row = dict[str, Any]
PEER = "frontrun"
NEEDS = ("frontrun[sql]", "psycopg[binary]", "redis")
SETTINGS = {"deadlock_timeout": "1h", "fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
#: the strategy that stands for the ledger's own code, through Django's ORM and redis-py
ORM = "naive-lock"
MARGIN = 8.0
REPLAYS = 10


@dataclass(frozen=True)
class Plan:
    """Seconds: for each case under the peer, and for each lane of the ledger's strategy."""

    peer: float = 12.0
    ledger: float = 20.0
    install: bool = True


QUICK = Plan(peer=5.0, ledger=5.0, install=False)


def run(plan: Plan, told: Callable[[str], None]) -> dict[str, Any]:
    rows: list[Row] = []
    with Postgres(settings=SETTINGS) as postgres, Valkey() as valkey:
        for case in CASES.values():
            told(case.name)
            ours = list(_ours(case, postgres.url, valkey.url))
            told(f"{case.name}, {PEER}")
            rows += [*ours, _peer(case, plan, postgres.url, valkey.url)]
    told(f"{ORM} through Django and redis-py")
    rows.append(_ledger(plan))
    return {"results": rows, "goals": list(_goals(rows)), "notes": []}


def _ours(case: Case, database: str, redis_url: str) -> Iterator[Row]:
    """With all reductions, and with none."""
    for reduction in (Reduction.FULL, Reduction.NONE):
        subject = CaseSubject(case, database, redis_url)
        servers = [PostgresServer(database, CONTENTS), RedisServer(redis_url)]
        bounds = Bounds(faults=0, patience=SECOND, reduction=reduction, budget=60.0)
        try:
            with Stage(subject, servers, bounds) as stage:
                search = Search(stage)
                found = search.explore()
                again = _replayed(stage, search)
        finally:
            for server in servers:
                server.close()
            subject.close()
        word = "kept" if found.exhausted and found.worst == UNBROKEN else found.worst
        yield {
            **_rates(f"explorer, reduction {reduction}", found.schedules, found.steps, found.seconds),
            "case": case.name,
            "verdict": "inconclusive" if word == UNBROKEN else word,
            "right": word == case.right,
            "replayed": again,
            "cause": found.cause,
        }


def _replayed(stage: Stage, search: Search) -> str:
    found = search.result.smallest(search.result.worst)
    if found is None or found.word == UNBROKEN:
        return ""
    words = [play(stage, search.watched, exactly(found.choices))[0].word for _ in range(REPLAYS)]
    return f"{words.count(found.word)} of {REPLAYS}"


def _peer(case: Case, plan: Plan, database: str, redis_url: str) -> Row:
    row: Row = {"strategy": PEER, "case": case.name}
    try:
        python = environment_for(PEER, NEEDS, make=plan.install)
    except NotInstalled as error:
        return {**row, "verdict": "not-run", "reason": str(error)}
    script = Path(explorer_frontrun.__file__)
    command = [python.with_name(PEER), python, script, case.name, database, redis_url, plan.peer]
    begun = time.perf_counter()
    try:
        done = subprocess.run(
            [str(word) for word in command],
            check=False,
            capture_output=True,
            text=True,
            timeout=plan.peer + MARGIN,
        )
        told = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        cause = f"no answer {MARGIN:g} s after its time was over"
        told = {
            "schedules": 0,
            "seconds": time.perf_counter() - begun,
            "verdict": "inconclusive",
            "cause": cause,
        }
    except (ValueError, IndexError):
        return {
            **row,
            "verdict": "not-run",
            "reason": (done.stderr.strip().splitlines() or ["no answer"])[-1],
        }
    return {
        **row,
        **_rates(PEER, told["schedules"], None, told["seconds"]),
        "verdict": told["verdict"],
        "right": told["verdict"] == case.right,
        "replayed": told.get("replayed", ""),
        "cause": told["cause"],
    }


def _ledger(plan: Plan) -> Row:
    """One strategy of the ledger, on all cores at once, as `manage.py explore` does it."""
    from loadtest.exploration.job import Job
    from loadtest.exploration.lanes import Lanes

    cores = os.cpu_count() or 1
    with Lanes(cores) as lanes:
        answers = [answer for _, answer in lanes.explore([Job(strategy=ORM, budget=plan.ledger)] * cores)]
    if broken := [answer["error"] for answer in answers if "error" in answer]:
        return {"strategy": "explorer", "case": f"{ORM} (ORM)", "verdict": "not-run", "reason": broken[0]}
    figures = [answer["result"].figures for answer in answers]
    seconds = max(each["seconds"] for each in figures)
    schedules, steps = (sum(each[name] for each in figures) for name in ("schedules", "steps"))
    row = _rates(f"explorer, {cores} lanes", schedules, steps, seconds)
    return {**row, "case": f"{ORM}, Django's ORM, 1 fault", "verdict": "", "replayed": "", "cause": ""}


def _rates(strategy: str, schedules: int, steps: int | None, seconds: float) -> Row:
    return {
        "strategy": strategy,
        "schedules": schedules,
        "seconds": round(seconds, 3),
        "schedules_per_s": round(schedules / seconds, 1),
        "steps_per_s": None if steps is None else round(steps / seconds, 1),
    }


def _goals(rows: Sequence[Row]) -> Iterator[Row]:
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(row["strategy"], []).append(row)
    full, none = (by_name[f"explorer, reduction {each}"] for each in (Reduction.FULL, Reduction.NONE))
    yield _goal("schedules/s, psycopg, one process, no reduction", 700, _rate(none))
    yield _goal(f"schedules/s, {ORM} through Django's ORM, all cores", 400, rows[-1].get("schedules_per_s"))
    yield _goal("cases that the explorer judges rightly", len(CASES), sum(row["right"] for row in full))
    peer = [row for row in by_name[PEER] if row["verdict"] != "not-run"]
    ratio = _rate(none) / rate if peer and (rate := _rate(peer)) else None
    yield _goal(f"schedules/s ÷ {PEER}'s", 10, ratio)


def _rate(rows: Sequence[Row]) -> float:
    seconds: float = sum(row["seconds"] for row in rows)
    return sum(row["schedules"] for row in rows) / seconds


def _goal(name: str, bound: float, measured: float | None) -> Row:
    row: Row = {"name": name, "goal": f"≥ {bound:g}", "measured": measured and round(measured, 1)}
    if measured is None:
        return {**row, "met": False, "reason": "not measured in this run"}
    return {**row, "met": measured >= bound}
