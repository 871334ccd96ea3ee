"""`manage.py bench locks`: the cost of a lock, uncontended and contended, compared with its peers and the floor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from loadtest.bench.locks import contended, limit
from loadtest.bench.locks import uncontended as locks_uncontended
from loadtest.bench.locks.pinning import MISSING, can_pin, pinned
from loadtest.bench.locks.servers import BenchServers, servers
from loadtest.bench.measured import Measured, Row
from loadtest.bench.neighbours import neighbours
from loadtest.trials.machine import machine

#: the values of `--part`
PARTS = {
    "uncontended": "acquire and release without contention, beside the floors and the peers",
    "contended": "8 processes, one lock, a GET and a SET inside; also one process alone, and 1 ms of work inside",
    "limit": "how often raw sockets can hand over the turn through the server",
    "waiters": "polling, publish/subscribe, queue and hand-over with 2 to 64 processes",
    "unpinned": "the other chosen parts once more, on all CPUs",
}


@dataclass(frozen=True)
class LocksPlan:
    """Durations and rounds. Seconds are for one contender in one round. `yours`: third-party locks."""

    parts: frozenset[str] = frozenset(PARTS)
    yours: tuple[str, ...] = ()
    rounds: int = 9
    uncontended: float = 0.25
    contended_rounds: int = 3
    contended: float = 1.2
    unpinned_rounds: int = 3
    waiters: tuple[int, ...] = (2, 4, 8, 16, 32, 64)
    waiting: float = 0.7
    turns: int = 5000
    install: bool = True

    def has(self, part: str) -> bool:
        """Is this part chosen? `unpinned` chooses a place, not a measurement: alone it means all parts."""
        return part in self.parts or self.parts == {"unpinned"}


QUICK = LocksPlan(
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


def run(plan: LocksPlan, found: Measured, told: Callable[[str], None] = lambda _: None) -> None:
    """Fill `found`. `told` is called with what is being measured."""
    if not can_pin():
        found.notes.append(MISSING)
    both = can_pin() and "unpinned" in plan.parts
    with neighbours() as others:
        for pin in (True, False) if both else (can_pin(),):
            with pinned(pin), servers() as ours:
                version = ours.plain.client().info("server")["valkey_version"]
                found.environment = machine({"valkey": str(version)})
                for row in _measures(plan, ours, pin, told):
                    found.results.append({"pinned": pin, **row})
    found.warning = others.warning()


def _measures(plan: LocksPlan, ours: BenchServers, pin: bool, told: Callable[[str], None]) -> Iterator[Row]:
    where = "one CPU" if pin else "all CPUs"
    times = plan.contended_rounds if pin else 1
    if plan.has("uncontended"):
        told(f"uncontended, {where}")
        rounds = plan.rounds if pin else plan.unpinned_rounds
        found = locks_uncontended.measure(
            ours, rounds=rounds, seconds=plan.uncontended, install=plan.install, yours=plan.yours
        )
        yield from ({"measure": "uncontended", **row} for row in found)
    if plan.has("contended"):
        turns = []
        for turn in range(times):
            told(f"8 processes, {where}, round {turn + 1} of {times}")
            turns.append(contended.one_round(ours, plan.contended, plan.yours))
        yield from contended.rows(turns)
    if plan.has("limit"):
        told(f"physical limit, {where}")
        yield from limit.rows(ours, turns=plan.turns, times=times)
    if plan.has("waiters") and (pin or not can_pin()):
        told(f"2 to {plan.waiters[-1]} waiters, {where}")
        yield from contended.waiters(ours, plan.waiters, plan.waiting)
