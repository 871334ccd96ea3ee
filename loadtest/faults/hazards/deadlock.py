"""deadlock: two transfers in opposite directions, each of which has its first account and waits for the other's.

    A   lock(A0001) ……………………… lock(A0002)  (waits for B)
    B   lock(A0002) ……………………… lock(A0001)  (waits for A)

The book is set to take accounts in the posting's order (`ordered: false`). If everyone used one order, there would be
no circle: that is the cure. A database detects the circle and rolls one side back. A lock elsewhere ends it by its
lease, if it has one, and then both are inside.

Proof        both stood between their two accounts, continued, and waited for each other; or PostgreSQL's log has
             "deadlock detected" for this book's sessions. (The server's counter would include other cells' deadlocks.)
Cannot touch a strategy in which no circle arose in 60 opposite transfers: it takes all accounts in one order, or none.
Cleans up    nothing is left behind.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from loadtest.faults.hazards.adversary import Adversary
from loadtest.faults.workers.crew import CrewWorker, Dead
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene

WAITING = 0.35  # seconds in which neither finishes: longer than a posting, shorter than every lease
TIMES = 30
THINK = (0.03, 0.05)  # a transfer that gets in before the other has ended stays long enough to be seen


class Deadlock(Adversary):
    slug = "deadlock"
    lasts = 13.0
    word = Hazard.DEADLOCK
    accounts = 2
    settings = {"ordered": False}

    def strike(self, scene: Scene) -> None:
        pair = [scene.hire(), scene.hire()]
        scene.struck.update(pair)
        amount = scene.chance.randint(1, 1000)
        there = (("A0001", -amount), ("A0002", amount)), (("A0002", -amount), ("A0001", amount))
        for worker, legs in zip(pair, there, strict=True):
            worker.begins("call", "transfer", legs, THINK, scene.lease, True)
        halfway = [each for each in pair if _stops(each)]
        for each in halfway:
            scene.guard.watch(each)
        if len(halfway) == len(pair):
            scene.note(f"each transfer is between its two accounts; {scene.held(pair[0])}")
            for each in pair:
                scene.go_on(each)
            until = time.monotonic() + WAITING
            waiting = [each for each in pair if not each.finishes(until)]
            if len(waiting) == len(pair):
                scene.fault("each transfer has one account and waits for the other's")
                scene.prove("each transfer held one account and waited for the other's")
        elif halfway:
            halfway[0].tells("go")
            for other in set(pair) - set(
                halfway
            ):  # it waited for what the first one held, and stops only now
                if _stops(other):
                    other.tells("go")
        if not scene.wait(pair, scene.enough):
            scene.deadline = 0.0  # they have already had their time
        tried = False
        if not scene.proof and not scene.deadlocks():
            tried = self.often(scene, pair, there)
        if broken := scene.deadlocks():
            scene.fault("PostgreSQL has broken a deadlock")
            scene.prove(f"PostgreSQL's log has {broken} × 'deadlock detected' for this book's sessions")
        elif not scene.proof and tried:
            scene.cannot = f"no circle arose in {2 * TIMES} transfers in opposite directions"

    def often(self, scene: Scene, pair: list[CrewWorker], there: tuple[object, object]) -> bool:
        """Try by chance, for a strategy that cannot be stopped between its accounts, or that did not wait there. Return
        whether all transfers were made."""
        free = [each for each in pair if not each.busy]
        for worker, legs in zip(free, there, strict=False):
            worker.begins("call", "transfers", legs, TIMES, scene.lease)
        return scene.wait(free, 10) and len(free) == len(pair)


def _stops(worker: CrewWorker) -> bool:
    with suppress(Dead):
        heard = worker.hears(5)
        return bool(heard and heard[0] == "inside")
    return False
