"""Raw psycopg on all cores: one process per core, each with its own database and Valkey, each doing the whole
search."""

from __future__ import annotations

import multiprocessing
import os
from contextlib import ExitStack
from typing import Any

import psycopg

from loadtest.bench.explorer.cases import CASES
from loadtest.bench.explorer.search import PLAYED, REAL, harness_for, plain_per_s, rates, word_of
from loadtest.bench.measured import Row, failed
from loadtest.servers import Postgres, Valkey
from lost_update_lab.search.search import Search

#: every schedule by real code, and from the recording
REAL_CORES, PLAYED_CORES = "explorer, no reduction, all cores", "explorer, no reduction, recorded, all cores"
HOW = {REAL_CORES: REAL, PLAYED_CORES: PLAYED}
#: cases of a few thousand schedules, where connecting and watching do not matter
LARGE_CASES = ("no lock, three deposits each", "no lock, four workers")
MARGIN = 60.0  # seconds beyond the budget


def measure(name: str, case: str, postgres: Postgres, budget: float) -> Row:
    """Return the row of a case, searched in one way (`name`: one of HOW) by one process per core, all at once.
    `of_plain`: schedules per second, relative to plain runs of the same work without an explorer."""
    cores = os.cpu_count() or 1
    context = multiprocessing.get_context("spawn")
    row: Row = {"strategy": name, "case": f"{case}, {cores} processes"}
    with ExitStack() as stack:
        all_there, told = context.Barrier(cores), context.SimpleQueue()
        lanes = []
        for number in range(cores):
            address = _database(postgres, f"cores_{number}"), stack.enter_context(Valkey()).url
            given = (told, all_there, name, case, *address, budget)
            lanes.append(context.Process(target=_explore, args=given, daemon=True))
        for lane in lanes:
            lane.start()
        for lane in lanes:
            lane.join(budget + MARGIN)
            lane.kill()
        answers: list[dict[str, Any]] = []
        while not told.empty():
            answers.append(told.get())
    if broken := [answer["error"] for answer in answers if "error" in answer]:
        return row | failed(broken[0])
    if len(answers) < cores:
        return row | failed("a process did not finish")
    schedules, steps, played = (
        sum(each[figure] for each in answers) for figure in ("schedules", "steps", "played")
    )
    measured = rates(schedules, steps, max(each["seconds"] for each in answers))
    measured["of_plain"] = measured["schedules_per_s"] / sum(each["plain_per_s"] for each in answers)
    word = " or ".join(sorted({word_of(str(each["worst"]), each["exhausted"]) for each in answers}))
    about = {"played": played, "verdict": word, "right": word == CASES[case].right, "replayed": ""}
    return {**row, **measured, **about, "cause": answers[0]["cause"]}


def _database(postgres: Postgres, name: str) -> str:
    with psycopg.connect(postgres.url, autocommit=True) as admin:
        admin.execute(f"DROP DATABASE IF EXISTS {name}")
        admin.execute(f"CREATE DATABASE {name}")
    return postgres.url.replace("/lab?", f"/{name}?")


def _explore(
    told: Any, all_there: Any, name: str, case: str, database: str, redis_url: str, budget: float
) -> None:
    """Run one search in a process of its own. It starts when all processes are ready."""
    try:
        all_there.wait(MARGIN)  # the limit, too, is measured on all cores at once
        plain = plain_per_s(CASES[case], database, redis_url)
        with harness_for(CASES[case], database, redis_url, HOW[name], budget) as harness:
            all_there.wait(MARGIN)
            found = Search(harness).explore()
        figures = ("schedules", "steps", "seconds", "played", "worst", "exhausted", "cause")
        told.put({figure: getattr(found, figure) for figure in figures} | {"plain_per_s": plain})
    except Exception as error:  # noqa: BLE001  (reported to the bench)
        told.put(
            {"error": f"{type(error).__name__}: {error}"}
        )  # before the processes that wait for it report an error too
        all_there.abort()
