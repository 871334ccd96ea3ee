"""overrun: the business takes longer than the lease, as 6 s with a lease of 5 s (scaled down here).

Unlike in `pause`, the process runs: a renewal thread does its work, and the lease of a lock without one runs out. If
the machine does not let it do its work in time, and the lease is lost, the worker leaves without a write: that would be
a `pause`. A lock that is renewed has a lease of 3 s here, of which a renewal may be late by some tenths.

Proof        how long the victim stood between read and write, with its lease and the key that was left.
Cannot touch nothing: a strategy without a lease is just slow.
Cleans up    the victim continues by itself.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from loadtest.faults.hazards.adversary import Adversary
from loadtest.faults.scene import sight
from loadtest.trials import dependencies
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene


RENEWED = 3.0  # seconds


class Overrun(Adversary):
    slug = "overrun"
    word = Hazard.OVERRUN
    lasts = 11.0

    def lease_of(self, strategy: str) -> float:
        return RENEWED if dependencies.keeps_alive(strategy) else super().lease_of(strategy)

    def strike(self, scene: Scene) -> None:
        if not (victim := scene.victim()):
            return
        scene.pulse(victim)
        begin, bound = time.monotonic(), scene.longest_lease()
        over = begin + min(sight.leases(scene.site, str(scene.book.pk)), default=bound)
        scene.ahead(2.5 * bound + 0.3)
        time.sleep(max(0.0, begin + 1.5 * bound - time.monotonic()))
        scene.fault(f"worker {victim.pid} has been inside for as long as its lease lasts", over)
        spent = time.monotonic() - begin
        scene.prove(
            f"{spent:.2f} s between read and write with a lease of {bound:.2f} s; {scene.held(victim)}"
        )
        scene.go_on(victim, outlasts=True)
