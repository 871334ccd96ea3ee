"""Leases: that they end, that they can be renewed, and that nobody renews another's."""

from __future__ import annotations

import inspect
import time
from typing import Any

from locks import Lock
from tests.contract.arena import Arena
from tests.contract.case import case
from tests.contract.fight import Fight
from tests.contract.party import Party
from tests.contract.promises import Broken, demand, wait_until
from tests.contract.site import FEW, UNHURRIED


@case("lease-expiry")
def lease_expiry(arena: Arena, lock: Any) -> None:
    """The holder's process is stopped (SIGSTOP): the lock is free when its lease is over, and not before."""
    with arena.fight(lock, lease=1.0, **FEW) as fight:
        holder, waiter = fight.process(), fight.party()
        asked = time.monotonic()
        demand(holder.asks("takes"), "nobody else wanted it, and it was not granted")
        waiting = waiter.waits()
        holder.stops()
        demand(
            waiter.got_in(waiting, 2 * fight.lease + 1),
            "its holder stands still, its lease is over, and it is not free",
        )
        waited = time.monotonic() - asked
        demand(waited > 0.95 * fight.lease, f"it was free after {waited:.2f} s of a lease of {fight.lease} s")


@case("renewal")
def renewal(arena: Arena, lock: Any) -> None:
    """Ten leases long, by renewal of its own or by `extend`, the lock stays its holder's."""
    with arena.fight(lock, lease=_lease(lock)) as fight:
        holder = fight.holder()
        if lock.renews:
            _renewed_by_itself(fight, holder)
        else:
            for _ in range(10):
                fight.passes_time(left=0.3 * fight.lease)
                holder.lock.extend()
                demand(
                    fight.remains() > 0.6 * fight.lease, "it was extended, and its lease did not start anew"
                )
        fight.closed("it was renewed, and somebody else got in")
        holder.lock.release()
        fight.opens_within(1, "it was released, and it is not free")


def _lease(lock: Any) -> float:
    """4 s where it renews at a half or a third of its lease: the case takes as many leases."""
    return 4.0 if lock.renews and "look" not in inspect.signature(lock).parameters else UNHURRIED


def _renewed_by_itself(fight: Fight, holder: Party) -> None:
    """The server is told again and again that a part of the lease has passed, until ten leases have."""
    started, taken = time.monotonic(), 0.0
    while time.monotonic() - started + taken < 10 * fight.lease:
        taken += fight.passes_time(left=0.85 * fight.lease)
        before = time.monotonic()
        while 0 < (left := fight.remains()) <= 0.85 * fight.lease:
            if time.monotonic() - before > fight.lease:
                break
            time.sleep(0.005)
        demand(
            left > 0, f"it ended after {time.monotonic() - started + taken:.1f} s: it was not renewed in time"
        )
    demand(holder.lock.held, "it was renewed all the time, and its holder does not know")


@case("renewal-of-anothers")
def renewal_of_anothers(arena: Arena, lock: type[Lock]) -> None:
    """A loses the lock and does not know yet; B gets it and is killed: B's lease ends. Then A releases late; C gets
    it and is killed: C's lease ends."""
    with arena.fight(lock) as fight:
        late = fight.holder()
        for told in ("a holder that lost it renews", "after its late release it renews"):
            fight.forgets()
            successor = fight.process()
            demand(successor.asks("takes"), "it was lost, and nobody else got in")
            successor.dies()
            _ends(fight, f"{told} the dead successor's lock")
            late.leaves()


def _ends(fight: Fight, told: str) -> None:
    try:
        wait_until(lambda: fight.remains() == 0, fight.lease + 1.0)
    except TimeoutError:
        raise Broken(told) from None
