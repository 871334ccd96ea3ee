"""`manage.py bench scale`: what 1, 2, 4 and 8 processes bring, for the web server, the import workers and Locust.

    web      n processes of gunicorn, Locust in FIXED processes             → postings/s
    locust   n processes of Locust, gunicorn in FIXED processes             → postings/s
    worker   n background workers, one import of four files in LANES lanes  → lines/s

Each point is a run of its own on fresh processes, and the points take turns: 1 2 4 8, then 8 4 2 1, and so on. The
postings go to many accounts, so that no row is the limit. While a point runs, the processor time of each kind of
process is read, and the limit is named from it (limits.py).
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from django.db.models import Max, Min

from ledger.imports.upload import Upload, start_import
from ledger.models import ImportLine, ImportRun
from ledger.reconcile_stored import books_of
from loadtest import workloads
from loadtest.bench.measured import Measured, Row, failed, spread
from loadtest.bench.neighbours import before
from loadtest.bench.scale.limits import KINDS, Processor, limit_of
from loadtest.servers.background import BackgroundWorker
from loadtest.servers.webserver import WebServer
from loadtest.swarm.run import Swarm
from loadtest.trials.case import TrialCase
from loadtest.trials.case import run as trial
from loadtest.trials.machine import cores, machine
from loadtest.workloads.imports import Imports

STRATEGY = "select-for-update"
#: processes of the other side, callers, accounts, lanes of the import, threads of a web process
FIXED, USERS, ACCOUNTS, LANES, THREADS = 4, 64, 1000, 32, 8
#: the curves, as the values of `--part`
CURVES = {
    "web": "processes of the web server",
    "worker": "background workers of one import",
    "locust": "processes of Locust",
}
PATIENCE = 300.0  # seconds for an import


@dataclass(frozen=True)
class ScalePlan:
    """`seconds`: of posting for each point. `lines`: of each of the import's four files. `parts`: which curves."""

    parts: frozenset[str] = frozenset(KINDS)
    processes: tuple[int, ...] = (1, 2, 4, 8)
    rounds: int = 3
    seconds: float = 5.0
    lines: int = 2000


QUICK = ScalePlan(processes=(1, 2), rounds=1, seconds=1.0, lines=100)


def run(plan: ScalePlan, found: Measured, told: Callable[[str], None] = lambda _: None) -> None:
    """Fill `found`: a row for each curve and number of processes, with the spread of its rounds. There are no goals."""
    found.environment, found.warning = machine({}), before()
    for along in (kind for kind in KINDS if kind in plan.parts):
        points: dict[int, list[Row]] = {count: [] for count in plan.processes}
        for turn in range(plan.rounds):
            for count in sorted(points, reverse=bool(turn % 2)):
                told(f"{along}: {count} processes, round {turn + 1} of {plan.rounds}")
                points[count].append(_measured(along, count, plan))
        found.results += [_row(along, count, rows) for count, rows in points.items()]


def _measured(along: str, count: int, plan: ScalePlan) -> Row:
    try:
        return importing(count, plan.lines) if along == "worker" else posting(along, count, plan.seconds)
    except Exception as error:  # noqa: BLE001  (a server that does not come up is a row without figures)
        return failed(error)


def _row(along: str, count: int, rounds: list[Row]) -> Row:
    """Return the row of one point: its median round's processor time, the spread of its rates."""
    about: Row = {"measure": "scale", "along": along, "processes": count, "strategy": STRATEGY}
    if broken := next((each for each in rounds if "reason" in each), None):
        return about | broken
    middle = sorted(rounds, key=lambda each: each["per_s"])[len(rounds) // 2]
    return (
        about
        | middle
        | {
            "per_s": statistics.median(each["per_s"] for each in rounds),
            "rounds": spread(each["per_s"] for each in rounds),
            "right": all(each["right"] for each in rounds),
        }
    )


def posting(along: str, count: int, seconds: float) -> Row:
    """Measure callers of the API, with `count` processes of the web server or of Locust."""
    web, locust = (count, FIXED) if along == "web" else (FIXED, count)
    case = TrialCase(
        strategy=STRATEGY,
        workload=workloads.find("deposits", ACCOUNTS),
        store="postgres",
        settings={"think": [0.0, 0.0]},
    )
    with WebServer(workers=web, threads=THREADS) as server, Processor() as processor:
        swarm = Swarm(host=server.url, web=server, users=USERS, seconds=seconds, processes=locust)
        judged = trial(case, swarm)
    if judged.witness is None or judged.books is None:
        raise RuntimeError(judged.verdict.as_json().get("reason"))
    calls = [call for call in judged.witness.history.calls if call.answered]
    if not calls:
        raise RuntimeError(f"no posting was answered: {judged.witness.history.errors()}")
    used = processor.used(min(call.started for call in calls), max(call.ended for call in calls))
    rate: float = judged.witness.history.rates()["ops_per_s"]
    books = judged.books
    return _point(rate, used, {"web": web, "locust": locust}, books.lost_updates + books.created_updates == 0)


def importing(count: int, lines: int) -> Row:
    """Measure one import with `count` background workers."""
    workload = Imports(ACCOUNTS, lines)
    book = TrialCase(
        strategy=STRATEGY, workload=workload, store="postgres", settings={"think": [0.0, 0.0]}
    ).open()
    uploads = [Upload(name, content) for name, content in workload.files().items()]
    with ExitStack() as stack:
        processor = stack.enter_context(Processor())
        for number in range(1, count + 1):
            stack.enter_context(BackgroundWorker(number=number))
        started = start_import(book, uploads, workers=LANES, scan=False)
        processor.wait(
            PATIENCE, lambda: ImportRun.objects.filter(pk=started.pk).exclude(finished=None).exists()
        )
    done = ImportLine.objects.filter(batch__run=started, state=ImportLine.State.POSTED)
    span = done.aggregate(first=Min("started"), last=Max("ended"))
    if done.count() < len(uploads) * lines:
        raise RuntimeError(f"{done.count()} of {len(uploads) * lines} lines posted within {PATIENCE:g} s")
    began, ended = span["first"].timestamp(), span["last"].timestamp()
    books = books_of(book)
    right = books.balanced and books.lost_updates + books.created_updates == 0
    return _point(done.count() / (ended - began), processor.used(began, ended), {"worker": count}, right)


def _point(rate: float, used: dict[str, float], processes: dict[str, int], right: bool) -> Row:
    return {
        "per_s": round(rate, 1),
        "cores": {kind: round(each, 2) for kind, each in used.items()},
        "limit": limit_of(used, processes, cores()),
        "right": right,
    }
