"""pause: SIGSTOP of the holder until long after its lease, then SIGCONT: it writes what it computed from its old read.

    victim   lock …… SELECT → 100 …… (stopped: a garbage collection, a suspended virtual machine) …… UPDATE 110
    rival                                lock …… SELECT → 100 …… UPDATE 130

Proof        the kernel reported "stopped" (T) at the beginning and at the end; the lock's keys at both times.
Cannot touch nothing: a process that holds no lease can be stopped as well.
Cleans up    the victim is continued, or killed with the cell.
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

from loadtest.faults.hazards.adversary import Adversary
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene


class Pause(Adversary):
    slug = "pause"
    word = Hazard.PAUSE

    def strike(self, scene: Scene) -> None:
        if not (victim := scene.victim()):
            return
        before, bound = scene.held(victim), scene.longest_lease()
        victim.stop()
        begin = time.monotonic()
        scene.fault(f"SIGSTOP of worker {victim.pid}")
        scene.ahead(2 * bound + 0.3)
        time.sleep(max(0.0, begin + bound + 0.05 - time.monotonic()))
        state, after = victim.state(), scene.held(victim)
        if state == "T":
            away = time.monotonic() - begin
            scene.prove(
                f"stopped for {away:.2f} s with a lease of {bound:.2f} s; before: {before}; at its end: {after}"
            )
        victim.signal(signal.SIGCONT)
        scene.fault(f"SIGCONT of worker {victim.pid}")
        scene.go_on(victim, outlasts=True)
