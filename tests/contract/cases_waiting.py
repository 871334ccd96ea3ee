"""Waiting: for how long, and in which order."""

from __future__ import annotations

import time
from concurrent.futures import TimeoutError as StillWaiting
from typing import Any

from tests.contract.arena import Arena
from tests.contract.case import case
from tests.contract.promises import Broken, demand, wait_until
from tests.contract.site import FEW, UNHURRIED

WAIT, TOLERANCE, TRIES, PATIENCE = 0.4, 0.1, 8, 5.0


@case("wait-time")
def wait_time(arena: Arena, lock: Any) -> None:
    """`acquire(timeout=0.4)` on a lock that stays held returns False after 0.4 s ± 10 %. A plain sleep beside it shows
    how late the machine is. That may hit a single attempt, so the best of eight counts: a lock that does not keep the
    time fails all eight."""
    with arena.fight(lock, lease=UNHURRIED, **FEW) as fight:
        holder, took = fight.holder(), []
        for _ in range(TRIES):
            waiter, started = fight.party(), time.monotonic()
            waiting = waiter.begins(_timed, waiter)
            time.sleep(WAIT)
            late = time.monotonic() - started - WAIT
            try:
                inside, waited = waiting.result(PATIENCE)
            except StillWaiting:
                holder.leaves()
                raise Broken(
                    f"the waiter should wait {WAIT} s, but after {WAIT + PATIENCE} s it still waits"
                ) from None
            demand(not inside, "the waiter got in while the holder was inside")
            took.append(waited)
            if -TOLERANCE * WAIT <= took[-1] - WAIT <= TOLERANCE * WAIT + late:
                return
        raise Broken(f"it should wait {WAIT} s, but waited {', '.join(f'{each:.2f}' for each in took)} s")


def _timed(waiter: Any) -> tuple[bool, float]:
    """Measured where it waits: a busy machine may begin this late, and a lock that never waits would look right."""
    began = time.monotonic()
    return waiter.gets_in(WAIT), time.monotonic() - began


@case("fairness")
def fairness(arena: Arena, lock: Any) -> None:
    """One client waits. The holder releases and comes straight back. It does not overtake the waiter."""
    with arena.fight(lock, lease=5.0) as fight:
        name = f"waiter-{fight.name}"
        holder, waiter = fight.holder(lease=UNHURRIED), fight.party(fight.site.named(name))
        waiting = waiter.begins(waiter.lock.acquire)
        # The waiter has asked at least once, and anything that it asks now belongs to its waiting. A subscription alone
        # proves nothing, because some locks subscribe before they ask. Two commands: at the first one the server may
        # not know the script.
        wait_until(
            lambda: waiter.gate.sent >= (2 if _subscribed(arena, name) else 6) or _blocked(arena, name)
        )
        waiter.gate.close()  # anything that it asks from now on comes after the holder's next actions
        wait_until(lambda: not waiter.gate.under_way or _blocked(arena, name))
        holder.lock.release()
        overtook = holder.gets_in()
        waiter.gate.open()
        demand(not overtook, "the holder released the lock, came straight back, and overtook the waiter")
        demand(waiting.result(), "the holder released the lock, but the waiter did not get in")


def _blocked(arena: Arena, client_name: str) -> bool:
    """Whether the server reports that one of the client's connections is in a blocking command."""
    return any("b" in each["flags"] for each in arena.clients(client_name))


def _subscribed(arena: Arena, client_name: str) -> bool:
    return any(int(each["sub"]) > 0 for each in arena.clients(client_name))
