"""waiter-interrupted: one worker is inside, another waits for it, and the waiter is interrupted (Ctrl-C, a time-out).

A release in a `finally` that also runs for a waiter that never got in gives away the holder's lock.

Proof        the waiter had begun and was still waiting when the signal came, and the signal ended its posting: with the
             interruption, or at once with another error in its place (`try-lock-checked` hides the interruption).
Cannot touch a strategy in which no worker waits: the other worker finishes although the first is inside.
Cleans up    nothing is left behind.
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from loadtest.faults.hazards.adversary import Adversary
from loadtest.faults.scene.scene import EASY_LEASE
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene
    from loadtest.faults.workers.crew import CrewWorker

WAITING = (
    0.4  # seconds in which it does not get in; more on a slow machine, where it may not have got that far
)
AT_ONCE = (
    0.3  # seconds within which the signal ends a waiting posting, even if another error hides the signal
)


class WaiterInterrupted(Adversary):
    slug = "waiter-interrupted"
    word = Hazard.WAITER_INTERRUPTED
    lease = EASY_LEASE

    def strike(self, scene: Scene) -> None:
        waiter = scene.hire()
        scene.struck.add(waiter)
        if not (victim := scene.victim()):
            return
        before = scene.held(victim)
        waiter.begins("post", 1, (0.0, 0.0), EASY_LEASE, False)
        if not scene.begun([waiter]):
            scene.note("the waiter has not begun yet")
        elif waiter.finishes(time.monotonic() + max(WAITING, scene.pace)) and not _answered(scene, waiter):
            scene.note(f"the waiter has failed: {waiter.answer}")
        elif not waiter.busy:
            scene.cannot = f"no worker waits: the other worker finished at once ({waiter.answer})"
        else:
            waiter.signal(signal.SIGUSR1)
            struck = time.monotonic()
            scene.fault(f"SIGUSR1 interrupts worker {waiter.pid}, which is waiting")
            ended = waiter.finishes(struck + 5)
            if ended and _by_it(waiter, time.monotonic() - struck):
                told = f"waiter {waiter.pid} interrupted ({waiter.answer})"
                scene.prove(f"{told}; before: {before}; after: {scene.held(victim)}")
            else:
                scene.note(f"the waiter was not interrupted: {waiter.answer}")
        scene.ahead(0.5)
        scene.go_on(victim)


def _answered(scene: Scene, waiter: CrewWorker) -> bool:
    """Whether it got a yes or a no at once. An error would not show whether a worker waits."""
    return "'ok'" in str(waiter.answer) or bool(scene.turned_away(waiter))


def _by_it(waiter: CrewWorker, seconds: float) -> bool:
    """Whether the signal, `seconds` ago, ended its posting."""
    told = str(waiter.answer or "'ok'")
    return "Interrupt" in told or (seconds < AT_ONCE and "'ok'" not in told)
