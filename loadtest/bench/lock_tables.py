"""`manage.py bench lock-tables`: one central row against a hundred, with one lock name and with many.

The lock-table article (E11, E13) measured 50 × 100 threads: 8 s behind the central row, 5 s behind the segments.
Here it is a ratio within one run: locks taken and released per second by 8 processes. The contenders take turns.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import connections

import ledger.config.mariadb
from ledger.lock_tables import LOCK_TABLES
from loadtest.bench import neighbours
from loadtest.bench.children import ChildFailed, crew
from loadtest.bench.measured import Measured, Row, failed, not_run, ratios, spread
from loadtest.servers import MariaDB
from loadtest.trials.environment import environment
from locks import LockUnavailable
from lost_update_lab.embedded import mariadb

CENTRAL, CONTENDERS = "centre-lock", ("centre-lock", "segmented-lock", "segmented-lock-mended")
ALIASES = {"mariadb": "mariadb", "postgres": "default"}
NAMES = {"one name": 1, "many names": 1000}
CALLERS = 8
LEASE, POLL = 30.0, 0.001  # seconds
HEAD_START = 0.15  # seconds, so that all start at the same moment


@dataclass(frozen=True)
class LockTablesPlan:
    """The number of rounds, and the seconds for one contender in one round."""

    rounds: int = 3
    seconds: float = 1.0


QUICK = LockTablesPlan(rounds=1, seconds=0.2)


def run(plan: LockTablesPlan, found: Measured, told: Callable[[str], None] = lambda _: None) -> None:
    """Fill `found`. There are no goals. Without MariaDB, its rows say what to install."""
    found.environment, found.warning = environment(), neighbours.before()
    with maria() as missing:
        for store, alias in ALIASES.items():
            if store == "mariadb" and missing:
                found.results += [_about(slug, store) | not_run(missing) for slug in CONTENDERS]
                continue
            for names in NAMES:
                found.results += _measure(plan, store, alias, names, told)


@contextmanager
def maria() -> Iterator[str | None]:
    """Provide a MariaDB as Django's `mariadb`: the configured one, or a new one. Yields the reason if there is none."""
    if "mariadb" in settings.DATABASES:
        yield None
        return
    if reason := mariadb.available():
        yield reason
        return
    with MariaDB() as server:
        settings.DATABASES["mariadb"] = ledger.config.mariadb.database(server.url)
        connections.settings = connections.configure_settings(settings.DATABASES)
        try:
            call_command("migrate", database="mariadb", verbosity=0)
            yield None
        finally:
            connections["mariadb"].close()
            del connections["mariadb"], settings.DATABASES["mariadb"]


def _measure(
    plan: LockTablesPlan, store: str, alias: str, names: str, told: Callable[[str], None]
) -> Iterator[Row]:
    found: dict[str, list[float]] = {slug: [] for slug in CONTENDERS}
    broken: dict[str, Row] = {}
    errors = dict.fromkeys(CONTENDERS, 0)
    for turn in range(plan.rounds):
        for slug in [each for each in CONTENDERS if each not in broken]:
            told(f"{slug} on {store}, {names}, round {turn + 1} of {plan.rounds}")
            try:
                per_s, refused = rate(slug, alias, NAMES[names], plan.seconds)
            except ChildFailed as error:
                broken[slug] = failed(error)
                continue
            found[slug].append(per_s)
            errors[slug] += refused
    for slug, speeds in found.items():
        about = _about(slug, store) | {"names": names}
        if slug in broken:
            yield about | broken[slug]
            continue
        ratio = {} if CENTRAL in broken else {"ratio": ratios(speeds, found[CENTRAL])}
        yield about | {"per_s": spread(speeds), **ratio, "errors": errors[slug]}


def _about(slug: str, store: str) -> Row:
    return {"measure": "lock and unlock", "strategy": slug, "store": store, "callers": CALLERS}


def rate(slug: str, alias: str, names: int, seconds: float) -> tuple[float, int]:
    """Return how many locks 8 processes took and released per second, and how often the database refused (a
    deadlock)."""
    for connection in connections.all(initialized_only=True):
        connection.close()  # each child would close a connection that it inherits by the fork
    with crew(*[_caller(slug, alias, names)] * CALLERS) as processes:
        for length in (0.1, seconds):
            started = time.monotonic() + HEAD_START
            for process in processes:
                process.tell((started, started + length))
            answers = [process.answer(length) for process in processes]
            passed = time.monotonic() - started
    return sum(done for done, _ in answers) / passed, sum(failed for _, failed in answers)


def _caller(slug: str, alias: str, names: int) -> Callable[[], Callable[[Any], Any]]:
    def prepare() -> Callable[[Any], Any]:
        draw, make = random.Random(), LOCK_TABLES[slug]  # noqa: S311  (not a secret)

        def work(order: tuple[float, float]) -> tuple[int, int]:
            start, end = order
            time.sleep(max(0.0, start - time.monotonic()))
            done, failed, left = 0, 0, end - start
            while left > 0:  # a process that starts late on a busy machine still tries once
                lock = make(f"bench-{draw.randrange(names)}", sql=alias, lease=LEASE, poll=POLL)  # type: ignore[call-arg]
                try:
                    if lock.acquire(left):
                        lock.release()
                        done += 1
                except LockUnavailable:
                    failed += 1
                left = end - time.monotonic()
            return done, failed

        return work

    return prepare
