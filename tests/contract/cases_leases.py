"""Leases: they end, they can be renewed, and no holder renews another's."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from locks import Lock
from tests.contract.arena import Arena
from tests.contract.case import case
from tests.contract.fight import Fight
from tests.contract.party import Party
from tests.contract.promises import demand, wait_until
from tests.contract.site import FEW, UNHURRIED, awaited, lease_of
from tests.contract.turns import quick_turns


@case("lease-expiry")
def lease_expiry(arena: Arena, lock: Any) -> None:
    """The holder's process is stopped (SIGSTOP). The lock becomes free when its lease is over, and not before."""
    with arena.fight(lock, lease=awaited(lock), **FEW) as fight:
        holder, waiter = fight.process(), fight.party()
        asked = time.monotonic()
        demand(holder.asks("takes"), "no other client wanted the lock, but it was not granted")
        waiting = waiter.waits()
        holder.stops()
        demand(
            waiter.got_in(waiting, fight.lease + 2),
            "its holder is stopped and its lease is over, but the lock is not free",
        )
        waited = time.monotonic() - asked
        demand(waited > 0.95 * fight.lease, f"free after {waited:.2f} s, with a lease of {fight.lease} s")


@case("renewal")
def renewal(arena: Arena, lock: Any) -> None:
    """The lock stays its holder's for ten leases, by its own renewal or by `extend`."""
    with quick_turns(), arena.fight(lock, lease=UNHURRIED) as fight:
        holder = fight.holder()
        if lock.renews:
            _renewed_by_itself(fight, holder)
        else:
            for _ in range(10):
                fight.passes_time(left=0.3 * fight.lease)
                holder.lock.extend()
                demand(fight.remains() > 0.6 * fight.lease, "it was extended, but its lease did not restart")
        fight.closed("it was renewed, but another client got in")
        holder.lock.release()
        fight.opens_within(1, "it was released, but it is not free")


def _renewed_by_itself(fight: Fight, holder: Party) -> None:
    """Tell the server again and again that most of the lease has passed, until ten leases have."""
    left, passed = 0.4 * fight.lease, 0.0
    while passed < 10 * fight.lease:
        passed += fight.passes_time(left)
        wait_until(lambda: not 0 < fight.remains() <= left, fight.lease)
        demand(fight.remains() > 0, f"it ended after {passed:.1f} s: it was not renewed in time")
    demand(holder.lock.held, "it was renewed all the time, but its holder believes that it is lost")


@case("renewal-of-anothers")
def renewal_of_anothers(arena: Arena, lock: type[Lock]) -> None:
    """A loses the lock and does not know it yet. B gets it and is killed: B's lease ends. Then A releases late. C gets
    the lock and is killed: C's lease ends."""
    with quick_turns(), arena.fight(lock, lease=UNHURRIED if lock.renews else lease_of(lock)) as fight:
        late = fight.holder()
        for told in ("a holder that lost it renews", "after its late release it renews"):
            fight.forgets()
            successor = fight.process()
            demand(successor.asks("takes"), "it was lost, but no other client got in")
            successor.dies()
            _ends(fight, awaited(lock), f"{told} the dead successor's lock")
            late.leaves()


def _ends(fight: Fight, left: float, told: str) -> None:
    fight.passes_time(left)
    with suppress(TimeoutError):
        wait_until(lambda: not 0 < fight.remains() <= left, left + 1.0)
    demand(fight.remains() == 0, told)
