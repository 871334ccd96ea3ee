"""worker-dies-renewal-lives: the business thread ends without a release; the process and its renewal thread live on.

Proof        the thread had the lock and ended; the process runs; the lock's keys after a whole lease.
Doubt        nobody waited in vain, but the machine gave the process too little time to renew.
Cannot touch a strategy whose lock has no renewal thread.
Cleans up    the process is killed with the cell.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from loadtest.faults.hazards.adversary import Adversary
from loadtest.trials import dependencies
from loadtest.verdict.evidence import Doubt
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene
    from loadtest.faults.workers.crew import CrewWorker


class RenewalLives(Adversary):
    slug = "worker-dies-renewal-lives"
    lasts = 11.0
    lease = 2.0  # so that a renewal which comes some tenths of a second late does not end it
    word = Hazard.RENEWAL_LIVES
    #: the worker whose business thread has ended
    orphaned: CrewWorker | None = None

    def not_applicable(self, strategy: str, store: str) -> str | None:
        return dependencies.no_renewal(strategy)

    def strike(self, scene: Scene) -> None:
        worker = scene.hire()
        scene.struck.add(worker)
        taken, ended = worker.asks("call", "take_and_die")
        if not taken or not ended:
            scene.note(
                f"the business thread has {'' if taken else 'not '}taken the lock and {'' if ended else 'not '}ended"
            )
            return
        self.orphaned = worker
        scene.fault(f"the business thread of worker {worker.pid} has ended, its renewal has not")
        bound = scene.longest_lease()
        time.sleep(1.2 * bound)
        left = scene.keys()
        told = f"the thread that had the lock has ended; the process is {worker.state()}"
        scene.prove(f"{told}; after {1.2 * bound:.2f} s {len(left)} keys are left")
        scene.rush()

    def settled(self, scene: Scene) -> None:
        """A renewal that got no time lets its lease end, as if the lock had no such thread."""
        if self.orphaned is None or scene.stall:
            return
        late = self.orphaned.asks("call", "lateness")
        if late > scene.guard.punctual * scene.lease:
            told = f"the machine gave worker {self.orphaned.pid} too little time to renew"
            scene.doubts.append(
                Doubt(f"{told} (a beat came {late:.2f} s late)", "run it again on a quieter machine")
            )
