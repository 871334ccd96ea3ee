"""`manage.py bench locks`: what a lock costs, alone and under contention, against its peers and the floor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from loadtest.bench import locks_limit, locks_rounds, locks_uncontended
from loadtest.bench.locks_goals import judge
from loadtest.bench.locks_servers import Servers, servers
from loadtest.bench.pinning import MISSING, can_pin, pinned
from loadtest.bench.spread import spread

Row = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """How long and how often. Seconds are for one contender in one round."""

    rounds: int = 9
    uncontended: float = 0.25
    contended_rounds: int = 3
    contended: float = 1.2
    unpinned_rounds: int = 3
    waiters: tuple[int, ...] = (2, 4, 8, 16, 32, 64)
    waiting: float = 0.7
    turns: int = 5000
    install: bool = True


QUICK = Plan(
    rounds=3,
    uncontended=0.05,
    contended_rounds=1,
    contended=0.4,
    unpinned_rounds=1,
    waiters=(2, 8),
    waiting=0.2,
    turns=500,
    install=False,
)


def with_rounds(plan: Plan, rounds: int) -> Plan:
    return replace(plan, rounds=rounds)


def run(plan: Plan, told: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Return `results`, `goals`, `notes` and `servers` (versions). `told` hears what is being measured."""
    rows: list[Row] = []
    versions: dict[str, str] = {}
    for pin in (True, False) if can_pin() else (False,):
        with pinned(pin), servers() as ours:
            versions["valkey"] = str(ours.plain.client().info("server")["valkey_version"])
            for row in _measures(plan, ours, pin, told):
                rows.append({"pinned": pin, **row})
    notes = [] if can_pin() else [MISSING]
    return {"results": rows, "goals": list(judge(rows)), "notes": notes, "servers": versions}


def _measures(plan: Plan, ours: Servers, pin: bool, told: Callable[[str], None]) -> Iterator[Row]:
    where = "one CPU" if pin else "all CPUs"
    told(f"uncontended, {where}")
    rounds = plan.rounds if pin else plan.unpinned_rounds
    for row in locks_uncontended.measure(ours, rounds=rounds, seconds=plan.uncontended, install=plan.install):
        yield {"measure": "uncontended", **row}
    times = plan.contended_rounds if pin else 1
    found = []
    for turn in range(times):
        told(f"8 processes, {where}, round {turn + 1} of {times}")
        found.append(locks_rounds.one_round(ours, plan.contended))
    yield from locks_rounds.rows(found)
    told(f"physical limit, {where}")
    for section in (False, True):
        name = "raw sockets, GET and SET inside" if section else "raw sockets"
        speed = [locks_limit.measure(ours, turns=plan.turns, section=section) for _ in range(times)]
        yield {"measure": "limit", "strategy": name, "per_s": spread(speed)}
    if pin or not can_pin():
        told(f"2 to {plan.waiters[-1]} waiters, {where}")
        yield from locks_rounds.waiters(ours, plan.waiters, plan.waiting)
