"""A strike: SIGKILL for one process of the service. Its proof is that the process is gone."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ledger.reconcile import Outcome
from loadtest.history import Call
from loadtest.servers.reaper import lives
from loadtest.soak.service import Service
from locks.hazards import Hazard

#: the hazard, in the words of the claims, that a kind of strike is to a strategy
HAZARDS = {
    "web-worker": Hazard.CRASH,
    "web-server": Hazard.CRASH,
    "background-worker": Hazard.WORKER_CRASH,
    "valkey": Hazard.SERVER_RESTART,
    "postgres": Hazard.DATABASE_RESTART,
}
PATIENCE = 60.0  # seconds that a victim is waited for: the one before may not have a successor yet


@dataclass(frozen=True)
class Strike:
    """`at`: seconds since the epoch. `done`: postings completed by then. `gone`: the process was seen to be."""

    kind: str
    at: float
    done: int
    pid: int
    gone: bool

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def strike(kind: str, service: Service, chance: random.Random, done: int) -> Strike:
    """Kill one process of this kind. Raises TimeoutError when there is none to kill."""
    until = time.monotonic() + PATIENCE
    while not (found := service.processes(kind)):
        if time.monotonic() > until:
            raise TimeoutError(f"no {kind} came back within {PATIENCE:g} s")
        time.sleep(0.05)
    victim = chance.choice(found)
    at = time.time()
    victim.kill()
    while (alive := lives(victim)) and time.time() - at < PATIENCE:
        time.sleep(0.002)
    return Strike(kind, at, done, victim.pid, not alive)


def in_flight(each: Strike, calls: Sequence[Call]) -> int:
    """Return how many operations were under way when it fell."""
    return sum(call.started < each.at < call.ended for call in calls)


def recovery(each: Strike, calls: Sequence[Call]) -> float | None:
    """Return the seconds until an operation that began after the strike was acknowledged. None: none was."""
    after = [c.ended for c in calls if c.outcome is Outcome.OK and c.started >= each.at]
    return round(min(after) - each.at, 3) if after else None


def fired(strikes: Sequence[Strike], calls: Sequence[Call]) -> dict[str, str]:
    """Return hazard → the evidence: which processes were killed, each seen to be gone, how much was under way."""
    proofs: dict[str, list[str]] = {}
    for kind, hazard in HAZARDS.items():
        gone = [each for each in strikes if each.kind == kind and each.gone]
        if gone:
            met = sum(in_flight(each, calls) for each in gone)
            told = f"SIGKILL to {kind} {len(gone)} times, {met} operations of this book under way"
            proofs.setdefault(str(hazard), []).append(told)
    return {hazard: "; ".join(told) for hazard, told in proofs.items()}
