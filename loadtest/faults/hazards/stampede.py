"""stampede: one worker is inside, 200 others come to the same account, and then the one inside continues.

Four processes of 50 threads, each thread with its own connections. The next cell reuses them, because to connect two
hundred times takes longer than to serve them. Two hundred callers that retry at once would waste the machine. So a
caller whose write was overtaken waits up to 1.5 s. A caller that polls does so every 0.13 s (every 70 ms took half as
much processor time again), or every 0.4 s where a poll is expensive (a majority of three servers, a transaction).

Proof        how many callers had begun, and how many had no answer yet, when the worker inside continued, by their own
             journals.
Cannot touch nothing: callers can always come.
Cleans up    the processes end with the matrix, or with the cell if one of them got no answer. No other hazard's cell
             runs meanwhile. Three cells of this one do, because a caller that waits for its next poll leaves the
             machine to the others.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ledger.lock_tables import LOCK_TABLES
from loadtest.faults.hazards.adversary import Adversary
from loadtest.history import calls
from loadtest.trials import dependencies
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene

PROCESSES, THREADS = 4, 50
GATHER = 20.0  # seconds for all to come: optimistic callers keep the machine busy with failed attempts
LEASE = (
    30.0  # longer: the worker inside waits for all, and must not lose its lock: that would be another hazard
)
POLL, POLL_OF_DEAR = 0.13, 0.4
SERVED = 30.0  # seconds for all to be answered


class Stampede(Adversary):
    slug = "stampede"
    word = Hazard.STAMPEDE
    alone = True
    abreast = 3
    lease = LEASE
    settings = {"retries": 2000, "backoff": [0.0, 1.5]}

    def settings_of(self, strategy: str) -> Mapping[str, Any]:
        dear = (
            dependencies.asks_a_majority(strategy) or strategy in LOCK_TABLES
        )  # several servers; a transaction
        return {**self.settings, "poll": POLL_OF_DEAR if dear else POLL}

    def strike(self, scene: Scene) -> None:
        herd = [scene.hire(kind=self.slug) for _ in range(PROCESSES)]
        if not (victim := scene.victim()):
            return
        known = begun(scene.folder)  # counted before any of the herd can begin
        for worker in herd:
            worker.begins("call", "crowd", THREADS, LEASE)
        came = gathered(scene.folder, known + PROCESSES * THREADS) - known
        begin = time.monotonic()
        waiting = sum(not each.answered for each in calls.read(scene.folder).calls) - 1
        scene.go_on(victim)
        if came >= PROCESSES * THREADS:
            scene.fault(f"{came} callers have come")
            scene.prove(f"{came} callers came while one worker was inside, and {waiting} of them had to wait")
        if scene.wait(herd, SERVED):
            answers: dict[str, int] = {}
            for worker in herd:
                for told, times in (worker.answer or {}).items():
                    answers[told] = answers.get(told, 0) + times
            scene.note(f"all were answered after {time.monotonic() - begin:.2f} s: {answers}")


def begun(folder: Path) -> int:
    """Return how many calls have begun, by all journals."""
    return len(calls.read(folder).calls)


def gathered(folder: Path, wanted: int) -> int:
    """Wait until `wanted` calls have begun. Return how many have."""
    until = time.monotonic() + GATHER
    while (came := begun(folder)) < wanted and time.monotonic() < until:
        time.sleep(0.1)
    return came
