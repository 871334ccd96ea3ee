"""release-foreign: while one worker is inside, another client releases the lock, which it never took.

Proof        the answer to the release, and the lock's keys before and after it.
Cannot touch a strategy without a lock object that a client could release, or whose release is the end of a generator.
Cleans up    nothing is left behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadtest.faults.hazards.adversary import Adversary
from loadtest.faults.scene.scene import EASY_LEASE
from loadtest.trials import dependencies
from locks.hazards import Hazard

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene


class ReleaseForeign(Adversary):
    slug = "release-foreign"
    word = Hazard.FOREIGN_RELEASE
    lease = EASY_LEASE

    def not_applicable(self, strategy: str, store: str) -> str | None:
        return dependencies.no_lock(strategy)

    def strike(self, scene: Scene) -> None:
        foreign = scene.hire()
        scene.struck.add(foreign)
        if not (victim := scene.victim()):
            return
        before = scene.held(victim)
        if answer := foreign.asks("call", "release_foreign"):
            scene.fault("another client releases the lock")
            scene.prove(f"another client's release {answer}; before: {before}; after: {scene.held(victim)}")
        else:
            scene.cannot = (
                "its release is the end of a generator (@contextmanager), which only the holder can reach"
            )
        scene.ahead(0.15)
        scene.go_on(victim)
