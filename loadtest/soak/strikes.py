"""A strike: SIGKILL to one process of the service. The proof: the process is gone, and was working for the book.

web worker, web server      a posting under way had to be sent again, because its connection broke
Valkey, PostgreSQL          a posting was under way (every posting of a strategy that uses the server goes there)
background worker           it held lines of an import: claimed by this very process, and not reported
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import psutil

from ledger.reconcile import ClientOutcome
from loadtest.history.calls import Call
from loadtest.soak.link import LOST
from loadtest.soak.plan import BACKGROUND, WEB
from loadtest.soak.service import Service
from locks.hazards import Hazard
from lost_update_lab.embedded.reaper import lives

#: kind of strike → the hazard that it is for a strategy, as claims name it
HAZARD_OF_STRIKE = {
    WEB: Hazard.CRASH,
    "web-server": Hazard.CRASH,
    BACKGROUND: Hazard.WORKER_CRASH,
    "valkey": Hazard.SERVER_RESTART,
    "postgres": Hazard.DATABASE_RESTART,
}
PATIENCE = 60.0  # seconds to wait for a victim: the previous one may not have a successor yet


@dataclass(frozen=True)
class Strike:
    """`at`: seconds since the epoch. `done`: postings completed by then. `gone`: the process was seen to have ended.
    `held`: book → keys of the lines that a background worker held."""

    kind: str
    at: float
    done: int
    pid: int
    gone: bool
    held: Mapping[str, Collection[str]] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "held": {book: len(keys) for book, keys in self.held.items()}}

    def met(self, calls: Sequence[Call], book: str) -> int:
        """Return the proved number of affected `calls`, which are the postings to `book`, or of affected import
        lines."""
        if not self.gone:
            return 0
        if self.kind == BACKGROUND:
            return len(self.held.get(book, ()))
        under_way = [call for call in calls if call.started < self.at < call.ended]
        return sum(map(_broken, under_way)) if HAZARD_OF_STRIKE[self.kind] == Hazard.CRASH else len(under_way)


def _broken(call: Call) -> bool:
    """Did it fail, other than by its client, which loses replies on purpose?"""
    return call.error not in ("", LOST)


def strike(
    kind: str,
    service: Service,
    chance: random.Random,
    done: int,
    among: Callable[[], Collection[int]] | None = None,
    busy: Callable[[int], bool] | None = None,
) -> Strike:
    """Kill one process of this kind, of those `among` (process ids) if given.

    `busy` is called while the process is stopped. If it has just ended its work, it continues, and another process is
    chosen. Raises TimeoutError if there is none to kill.
    """

    def victims() -> list[psutil.Process]:
        pids = among() if among else None
        return [each for each in service.processes(kind) if pids is None or each.pid in pids]

    until = time.monotonic() + PATIENCE
    while not (found := victims()) or not stopped_at_work(victim := chance.choice(found), busy):
        if time.monotonic() > until:
            raise TimeoutError(f"no {kind} to strike within {PATIENCE:g} s")
        time.sleep(0.01)
    at = time.time()
    victim.kill()
    while (alive := lives(victim)) and time.time() - at < PATIENCE:
        time.sleep(0.002)
    return Strike(kind, at, done, victim.pid, not alive)


def stopped_at_work(victim: psutil.Process, busy: Callable[[int], bool] | None) -> bool:
    """Stop the process (SIGSTOP), then check whether it is `busy`, and return that. If it is not, it continues.

    Without the stop, it could end its work between the check and the kill.
    """
    if busy is None:
        return True
    found = False
    try:
        victim.suspend()
        try:
            while victim.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
                time.sleep(0.001)  # the signal arrives a moment after it is sent
            found = busy(victim.pid)
        finally:
            if not found:
                victim.resume()
    except psutil.NoSuchProcess:
        return False
    return found


def recovery(
    each: Strike, calls: Sequence[Call], imported: Sequence[Call] = (), book: str = ""
) -> float | None:
    """Return the seconds until a posting that began after the strike was acknowledged. For a background worker: until
    all lines that it held were posted. None: this never happened, or it held nothing."""
    if each.kind == BACKGROUND:
        keys = each.held.get(book, ())
        ended = [call.ended for call in imported if call.key in keys and call.outcome is ClientOutcome.OK]
        return round(max(ended) - each.at, 3) if keys and len(ended) == len(keys) else None
    after = [c.ended for c in calls if c.outcome is ClientOutcome.OK and c.started >= each.at]
    return round(min(after) - each.at, 3) if after else None


def fired(strikes: Sequence[Strike], calls: Sequence[Call], book: str) -> dict[str, str]:
    """Return hazard → the evidence: the killed processes, and how much of this book's work they affected."""
    proofs: dict[str, list[str]] = {}
    for kind, hazard in HAZARD_OF_STRIKE.items():
        met = [number for each in strikes if each.kind == kind and (number := each.met(calls, book))]
        if met:
            what = "lines held" if kind == BACKGROUND else "postings under way"
            told = f"SIGKILL to {kind} {len(met)} times, {sum(met)} {what}"
            proofs.setdefault(str(hazard), []).append(told)
    return {hazard: "; ".join(told) for hazard, told in proofs.items()}
