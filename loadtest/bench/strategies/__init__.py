"""`manage.py bench strategies`: the cost of a strategy, beside pgbench with the same SQL on the same server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.db import connection

from loadtest.bench import neighbours
from loadtest.bench.measured import Measured
from loadtest.bench.strategies import bulk as bulk
from loadtest.bench.strategies import rates as rates
from loadtest.bench.strategies.databases import fresh_databases
from loadtest.bench.strategies.goals import MILLION
from loadtest.trials.environment import environment

#: the values of `--part`
PARTS = {
    "one-account": "each strategy and pgbench on one account",
    "hundred-accounts": "the same on a hundred accounts",
    "import": "the set-based import beside bulk_create and beside a COPY of ready rows",
    "reconcile": "reconcile of up to 1,000,000 entries",
    "growth": "postings per second over the number of accounts, and of callers",
}
ACCOUNTS = {"one-account": 1, "hundred-accounts": 100}
#: settings → the values that make a commit durable
DURABLE = {"fsync": ("on",), "synchronous_commit": ("on", "remote_write", "remote_apply", "local")}


@dataclass(frozen=True)
class StrategiesPlan:
    """Durations and rounds. Seconds are for one contender in one round. `loads`: the rounds of the import."""

    parts: frozenset[str] = frozenset(PARTS)
    yours: tuple[str, ...] = ()  # further strategies and third-party locks
    rounds: int = 5
    seconds: float = 1.0
    loads: int = 5
    lines: int = 300_000
    entries: tuple[int, ...] = (10_000, 100_000, MILLION)
    growth_accounts: tuple[int, ...] = (1, 10, 100, 1000)
    growth_callers: tuple[int, ...] = (1, 2, 4, 8, 16)
    growth_seconds: float = 0.5


QUICK = StrategiesPlan(
    rounds=1,
    loads=1,
    seconds=0.3,
    parts=frozenset(PARTS) - {"hundred-accounts"},
    lines=2_000,
    entries=(2_000, 4_000),
    growth_accounts=(10,),
    growth_callers=(1,),
    growth_seconds=0.1,
)


def run(plan: StrategiesPlan, found: Measured, told: Callable[[str], None] = lambda _: None) -> None:
    """Fill `found`. `told` is called with what is being measured."""
    found.environment, found.warning = environment(), neighbours.before()
    found.notes.append(commits())
    with fresh_databases(found.notes.append) as turn:
        for part, accounts in ACCOUNTS.items():
            if part in plan.parts:
                found.results += rates.measure(turn, accounts, plan.rounds, plan.seconds, plan.yours, told)
        if "import" in plan.parts:
            found.results += bulk.imports(turn, plan.loads, plan.lines, told)
        if "reconcile" in plan.parts:
            found.results += bulk.reconciles(plan.entries, plan.lines, told)
        if "growth" in plan.parts:
            found.results += rates.growth(
                turn, plan.growth_accounts, plan.growth_callers, plan.growth_seconds, told
            )


def commits() -> str:
    """Return whether the server answers a commit only when it is on disk. Rates without that are not comparable."""
    with connection.cursor() as cursor:
        given = {}
        for name in DURABLE:
            cursor.execute(f"SHOW {name}")
            given[name] = cursor.fetchone()[0]
    durable = all(given[name] in values for name, values in DURABLE.items())
    listed = ", ".join(f"{name} = {value}" for name, value in given.items())
    return f"Commits are {'durable' if durable else 'NOT durable: the goals do not apply to such rates'} ({listed})."
