"""`manage.py bench locks`: what a lock costs, alone and under contention, against its peers and the floor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from loadtest.bench import locks_limit, locks_rounds, locks_uncontended
from loadtest.bench.locks_goals import judge
from loadtest.bench.locks_servers import Servers, servers
from loadtest.bench.neighbours import neighbours
from loadtest.bench.pinning import MISSING, can_pin, pinned

Row = dict[str, Any]

#: what `--part` chooses from
PARTS = {
    "uncontended": "acquire and release with nobody else about, beside the floors and the peers",
    "contended": "8 processes, one lock, a GET and a SET inside; also one process alone, and 1 ms of work inside",
    "limit": "how often raw sockets can pass the turn through the server",
    "waiters": "polling, publish/subscribe, queue and hand-over with 2 to 64 processes",
    "unpinned": "what else was chosen once more, on all CPUs",
}


@dataclass(frozen=True)
class Plan:
    """How long and how often. Seconds are for one contender in one round."""

    parts: frozenset[str] = frozenset(PARTS)
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
    parts=frozenset(PARTS) - {"unpinned"},
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


def chosen(plan: Plan, rounds: int | None, parts: list[str] | None) -> Plan:
    plan = plan if rounds is None else replace(plan, rounds=rounds)
    if not parts:
        return plan
    only = frozenset(parts)
    return replace(plan, parts=only if only != {"unpinned"} else frozenset(PARTS))


def run(plan: Plan, told: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Return `results`, `goals`, `notes`, `servers` (versions) and `warning`, if others used the machine too. `told`
    hears what is being measured."""
    rows: list[Row] = []
    versions: dict[str, str] = {}
    both = can_pin() and "unpinned" in plan.parts
    with neighbours() as others:
        for pin in (True, False) if both else (can_pin(),):
            with pinned(pin), servers() as ours:
                versions["valkey"] = str(ours.plain.client().info("server")["valkey_version"])
                for row in _measures(plan, ours, pin, told):
                    rows.append({"pinned": pin, **row})
    warning = others.warning()
    notes = ([] if can_pin() else [MISSING]) + ([warning] if warning else [])
    return {
        "results": rows,
        "goals": list(judge(rows)),
        "notes": notes,
        "servers": versions,
        "warning": warning,
    }


def _measures(plan: Plan, ours: Servers, pin: bool, told: Callable[[str], None]) -> Iterator[Row]:
    where = "one CPU" if pin else "all CPUs"
    times = plan.contended_rounds if pin else 1
    if "uncontended" in plan.parts:
        told(f"uncontended, {where}")
        rounds = plan.rounds if pin else plan.unpinned_rounds
        found = locks_uncontended.measure(ours, rounds=rounds, seconds=plan.uncontended, install=plan.install)
        yield from ({"measure": "uncontended", **row} for row in found)
    if "contended" in plan.parts:
        turns = []
        for turn in range(times):
            told(f"8 processes, {where}, round {turn + 1} of {times}")
            turns.append(locks_rounds.one_round(ours, plan.contended))
        yield from locks_rounds.rows(turns)
    if "limit" in plan.parts:
        told(f"physical limit, {where}")
        yield from locks_limit.rows(ours, turns=plan.turns, times=times)
    if "waiters" in plan.parts and (pin or not can_pin()):
        told(f"2 to {plan.waiters[-1]} waiters, {where}")
        yield from locks_rounds.waiters(ours, plan.waiters, plan.waiting)
