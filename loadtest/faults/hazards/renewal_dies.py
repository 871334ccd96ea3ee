"""renewal-dies: only the thread that renews the lease dies; the business thread continues and does not know.

Proof        the names of the threads that ended in the victim while its main thread was inside.
Cannot touch a strategy whose lock has no renewal thread.
Cleans up    nothing is left behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadtest.faults.hazards.adversary import Adversary
from loadtest.trials import dependencies
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene


class RenewalDies(Adversary):
    slug = "renewal-dies"
    word = Hazard.RENEWAL_DIES

    def not_applicable(self, strategy: str, store: str) -> str | None:
        return dependencies.no_renewal(strategy)

    def strike(self, scene: Scene) -> None:
        if not (victim := scene.victim()):
            return
        bound = scene.longest_lease()
        victim.tells("silence")
        heard = victim.hears(15)
        if not heard or not heard[1]:
            scene.note(f"no thread ended in worker {victim.pid}: {heard}")
        else:
            scene.fault(f"the renewal thread of worker {victim.pid} ends")
            scene.prove(f"ended in worker {victim.pid}: thread {', '.join(heard[1])}; {scene.held(victim)}")
        scene.ahead(2.5 * bound + 0.3)
        scene.go_on(victim, outlasts=True)
