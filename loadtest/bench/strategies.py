"""`manage.py bench strategies`: what a strategy costs, beside pgbench with the same SQL on the same server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loadtest.bench import strategies_bulk as bulk
from loadtest.bench import strategies_rates as rates
from loadtest.bench.strategies_goals import MILLION, judge

#: what `--part` chooses from
PARTS = {
    "one-account": "each strategy and pgbench on one account",
    "hundred-accounts": "the same on a hundred",
    "import": "the set-based import beside bulk_create and beside a COPY of ready rows",
    "reconcile": "reconcile of up to 1,000,000 entries",
    "growth": "postings a second over the number of accounts, and of callers",
}
ACCOUNTS = {"one-account": 1, "hundred-accounts": 100}


@dataclass(frozen=True)
class Plan:
    """How long and how often. Seconds are for one contender in one round."""

    parts: frozenset[str] = frozenset(PARTS)

    rounds: int = 3
    seconds: float = 1.0
    lines: int = 100_000
    entries: tuple[int, ...] = (10_000, 100_000, MILLION)
    growth_accounts: tuple[int, ...] = (1, 10, 100, 1000)
    growth_callers: tuple[int, ...] = (1, 2, 4, 8, 16)
    growth_seconds: float = 0.5


QUICK = Plan(
    rounds=1,
    seconds=0.3,
    parts=frozenset(PARTS) - {"hundred-accounts"},
    lines=2_000,
    entries=(2_000, 4_000),
    growth_accounts=(10,),
    growth_callers=(1,),
    growth_seconds=0.1,
)


def run(plan: Plan, told: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Return `results`, `goals` and `notes`. `told` hears what is being measured."""
    rows: list[dict[str, Any]] = []
    for part, accounts in ACCOUNTS.items():
        if part in plan.parts:
            rows += rates.measure(accounts, plan.rounds, plan.seconds, told)
    if "import" in plan.parts:
        rows += bulk.imports(plan.rounds, plan.lines, told)
    if "reconcile" in plan.parts:
        rows += bulk.reconciles(plan.entries, plan.lines, told)
    if "growth" in plan.parts:
        rows += rates.growth(plan.growth_accounts, plan.growth_callers, plan.growth_seconds, told)
    return {"results": rows, "goals": list(judge(rows)), "notes": []}
