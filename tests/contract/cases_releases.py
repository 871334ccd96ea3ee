"""Releases by clients that do not hold the lock, or no longer hold it."""

from __future__ import annotations

from typing import Any

from tests.contract.arena import Arena
from tests.contract.case import case
from tests.contract.promises import demand
from tests.contract.site import UNHURRIED


@case("foreign-release")
def foreign_release(arena: Arena, lock: Any) -> None:
    """A client that never held the lock releases it. The holder keeps it."""
    with arena.fight(lock, lease=UNHURRIED) as fight:
        fight.holder()
        fight.party().leaves()
        fight.closed("a client that never held the lock released it, and another got in beside the holder")


@case("release-after-loss")
def release_after_loss(arena: Arena, lock: Any) -> None:
    """A's lease is over, B got in, A releases. B keeps the lock."""
    with arena.fight(lock, lease=UNHURRIED) as fight:
        late = fight.holder()
        fight.forgets()
        fight.holder()
        late.leaves()
        fight.closed("a late release freed the successor's lock, and a third client got in")


@case("release-overtaken")
def release_overtaken(arena: Arena, lock: Any) -> None:
    """The same, but the lease ends and B gets in while A is stopped inside its release: before each further command."""
    step = 1
    while True:
        with arena.fight(lock, lease=UNHURRIED) as fight:
            late = fight.party()
            demand(late.begins(late.takes).result(), "no other client wants the lock, but it was not granted")
            releasing = late.begins(late.leaves, stop_before=step)
            if not late.stands_at_the_gate(releasing):
                return
            fight.forgets()
            successor_inside = fight.party().gets_in()
            late.gate.open()
            releasing.result()
            if successor_inside:
                fight.closed(
                    f"overtaken before command {step + 1} of its release, it freed the successor's lock"
                )
        step += 1
