"""crash-holding: SIGKILL of a worker that stands between read and write.

Proof        the victim reported that it was inside; the lock's key, or its session, was seen at that moment; the
             process is dead.
Cannot touch nothing: every strategy has workers.
Cleans up    nothing: what the strategy leaves behind is the question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadtest.faults.hazards.adversary import Adversary
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene


class CrashHolding(Adversary):
    slug = "crash-holding"
    lasts = 7.0
    word = Hazard.CRASH

    def strike(self, scene: Scene) -> None:
        if victim := scene.victim():
            held = scene.held(victim)
            victim.die()
            scene.fault(f"SIGKILL of worker {victim.pid}")
            scene.prove(f"SIGKILL of worker {victim.pid} (exit {victim.exitcode}) inside; {held}")
            scene.rush()
