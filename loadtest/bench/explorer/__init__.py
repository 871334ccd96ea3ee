"""`bench explorer`: schedules per second, what the reductions save, and the same small cases under frontrun.

Everything is measured in one run, and the contenders take turns on each case (rounds.py). There are no faults, because
frontrun has none. Only the search is compared: no process start, no connecting, no schema, no replays, and no schedule
from a recording, because frontrun runs each one by real code. Both use one process. The rate on all cores is measured
separately (cores.py), on cases that are large enough.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from loadtest.bench import neighbours
from loadtest.bench.explorer import cores as explorer_cores
from loadtest.bench.explorer import peer as explorer_peer
from loadtest.bench.explorer.cases import CASES, SearchCase
from loadtest.bench.explorer.cores import LARGE_CASES
from loadtest.bench.explorer.rounds import ANY, ONE, Urls, in_turns
from loadtest.bench.explorer.search import FULL, REAL, harness_for, rates, word_of
from loadtest.bench.locks.pinning import pinned
from loadtest.bench.measured import Measured, Row, failed
from loadtest.servers import Postgres, Valkey
from loadtest.trials.machine import machine
from lost_update_lab.embedded.postgres import EXPLORED_SETTINGS
from lost_update_lab.harness import Harness
from lost_update_lab.harness.play import play
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.scenarios.result import INCONCLUSIVE
from lost_update_lab.schedule.schedule_id import exactly
from lost_update_lab.search.search import Search

SETTINGS = {**EXPLORED_SETTINGS, "deadlock_timeout": "1h"}
#: the strategy that represents the ledger's own code, through Django's ORM and redis-py
ORM = "naive-lock"
REPLAYS = 10
#: the search of `manage.py explore`; and without reduction and recording: each schedule by real code, as a peer does
USUAL, UNREDUCED, LEDGER = "explorer", "explorer, no reduction", "explorer, all cores"
HOW = {USUAL: FULL, UNREDUCED: REAL}


@dataclass(frozen=True)
class ExplorerPlan:
    """`peer`, `ledger`, `cores`: seconds for each case under the peer, for each lane of the ledger's strategy, and for
    the large cases. `rounds`: rounds of each case."""

    cases: tuple[str, ...] = tuple(CASES)
    large: tuple[str, ...] = LARGE_CASES
    rounds: int = 5
    peer: float = 12.0
    ledger: float = 20.0
    cores: float = 20.0
    install: bool = True


QUICK = ExplorerPlan(large=LARGE_CASES[-1:], rounds=1, peer=5.0, ledger=5.0, cores=3.0, install=False)


def run(plan: ExplorerPlan, found: Measured, told: Callable[[str], None] = lambda _: None) -> None:
    """Fill `found`. `told` is called with what is being measured."""
    found.environment, found.warning = machine({}), neighbours.before()

    def theirs(case: SearchCase, database: str, redis_url: str) -> Row:
        return explorer_peer.measure(case, plan.peer, plan.install, database, redis_url)

    with ExitStack() as stack:
        places = {ANY: _servers(stack), ONE: _servers(stack, one_core=True)}
        for case in (CASES[name] for name in plan.cases):
            told(f"{case.name}, in turns with {explorer_peer.PEER}")
            found.results += in_turns(case, plan.rounds, places, ours, theirs)
        postgres = stack.enter_context(Postgres(settings=SETTINGS))
        for name in plan.large:
            for how in explorer_cores.HOW:
                told(f"{name}, {how}")
                found.results.append(explorer_cores.measure(how, name, postgres, plan.cores))
    told(f"{ORM} through Django and redis-py")
    found.results.append(ledger(plan))


def _servers(stack: ExitStack, one_core: bool = False) -> Urls:
    with pinned(one_core):  # the servers inherit this process's core
        postgres = stack.enter_context(Postgres(settings=SETTINGS))
        return postgres.url, stack.enter_context(Valkey()).url


def ours(case: SearchCase, database: str, redis_url: str) -> Iterator[Row]:
    """Yield a row for each way to search. `played`: schedules that came from the recording."""
    for name, how in HOW.items():
        with harness_for(case, database, redis_url, how) as harness:
            search = Search(harness)
            found = search.explore()
            again = _replayed(harness, search)
        word = word_of(found.worst, found.exhausted)
        yield {
            "strategy": name,
            "case": case.name,
            **rates(found.schedules, found.steps, found.seconds),
            "played": found.played,
            "verdict": word,
            "right": None if word == INCONCLUSIVE else word == case.right,
            "replayed": again,
            "cause": found.cause,
        }


def _replayed(harness: Harness, search: Search) -> str:
    found = search.result.smallest(search.result.worst)
    if found is None or found.word == UNBROKEN:
        return ""
    words = [play(harness, search.watched, exactly(found.choices))[0].word for _ in range(REPLAYS)]
    return f"{words.count(found.word)} of {REPLAYS}"


def ledger(plan: ExplorerPlan) -> Row:
    """Measure one strategy of the ledger on all cores at once, as `manage.py explore` does."""
    from loadtest.explorer.lanes import Lanes
    from loadtest.findings.job import Job

    cores = os.cpu_count() or 1
    about: Row = {"strategy": LEDGER, "case": f"{ORM}, Django's ORM, 1 fault, {cores} lanes"}
    with Lanes(cores) as lanes:  # the first job of a lane also waits for its process
        list(lanes.explore([Job(strategy="no-lock", budget=plan.ledger)] * cores))
        answers = [answer for _, answer in lanes.explore([Job(strategy=ORM, budget=plan.ledger)] * cores)]
    if broken := [answer["error"] for answer in answers if "error" in answer]:
        return about | failed(broken[0])
    figures = [answer["result"].figures for answer in answers]
    schedules, steps, played = (
        sum(each[name] for each in figures) for name in ("schedules", "steps", "played")
    )
    measured = rates(schedules, steps, max(each["seconds"] for each in figures))
    return {**about, **measured, "played": played, "verdict": "", "replayed": "", "cause": ""}
