"""Which client is inside while nothing goes wrong."""

from __future__ import annotations

import time
from typing import Any

from tests.contract.arena import Arena
from tests.contract.case import case
from tests.contract.fight import Fight
from tests.contract.party import Party
from tests.contract.promises import Broken, demand
from tests.contract.site import UNHURRIED


@case("mutual-exclusion")
def mutual_exclusion(arena: Arena, lock: Any) -> None:
    """Two processes. While one is inside, the other is refused. Afterwards the other gets in."""
    with arena.fight(lock, lease=UNHURRIED) as fight:
        first, second = fight.process(), fight.process()
        demand(first.asks("takes"), "no other client wanted the lock, but it was not granted")
        demand(not second.asks("acquire", 0), "a second process got in while the first was inside")
        first.asks("release")
        demand(second.asks("takes"), "the lock was released, but the second process did not get in")
        second.asks("release")


@case("race")
def race(arena: Arena, lock: Any) -> None:
    """One client is stopped before each command of its acquire in turn, while another runs its whole acquire. First on
    a free lock, then on what a client left behind that died in its acquire."""
    step = 0
    with arena.fight(lock) as fight:
        while _overtaken(fight, step):
            step += 1
    if getattr(lock, "lease_step", None) is None:
        return
    left_behind = []
    try:
        while (fight := _leftover(arena, lock, len(left_behind))) is not None:
            left_behind.append(fight)
        if left_behind:
            time.sleep(left_behind[0].lease + 0.02)  # by the clients' clocks its lease is over now
        for step, fight in enumerate(left_behind):
            _overtaken(fight, step)
    finally:
        for fight in left_behind:
            fight.ends()


def _overtaken(fight: Fight, step: int) -> bool:
    """Return False if an acquire has no such step."""
    slow, fast = fight.party(lease=UNHURRIED), fight.party(lease=UNHURRIED)
    acquiring = slow.begins(slow.gets_in, stop_before=step)
    came = slow.stands_at_the_gate(acquiring)
    inside = came and fast.gets_in()
    slow.gate.open()
    if acquiring.result() and inside:
        raise Broken(
            f"a client was stopped before command {step + 1} of its acquire, another got in, and then it did too"
        )
    for party in (slow, fast):
        party.leaves()
        party.dies()
    fight.forgets()
    return came


def _leftover(arena: Arena, lock: Any, number: int) -> Fight | None:
    """Return a lock that never expires on the server, left by a client that died in its acquire. None: none is left."""
    step = 0
    while True:
        fight = Fight(arena, lock, f"leftover-{number}-{time.monotonic_ns()}", {})
        dying = fight.party()
        if not dies_in_acquire(dying, step):
            fight.ends()
            return None
        if fight.remains() == -1 and number < 8:
            return fight
        fight.ends()
        step += 1


def dies_in_acquire(party: Party, step: int) -> bool:
    """Kill the party before this command of its acquire. False: there is no such command."""
    acquiring = party.begins(party.takes, stop_before=step)
    came = party.stands_at_the_gate(acquiring)
    party.dies()
    return came


@case("reentrancy")
def reentrancy(arena: Arena, lock: Any) -> None:
    """Two threads share one object. The second does not enter the first one's section."""
    with arena.fight(lock, lease=UNHURRIED) as fight:
        shared = fight.holder()  # this thread is inside
        try:
            entered = shared.begins(shared.gets_in, 0.05).result()  # and this is another
        except Exception:  # noqa: BLE001
            entered = False  # an error is a refusal
        demand(not entered, "a second thread entered the first one's section through the same object")
        shared.lock.release()
        fight.opens_within(1, "the first thread released the lock, but it is not free")


@case("endurance")
def endurance(arena: Arena, lock: Any) -> None:
    """One client takes and releases the lock 12 times."""
    with arena.fight(lock, lease=UNHURRIED) as fight:
        party = fight.party()
        for turn in range(12):
            try:
                demand(party.takes(), f"turn {turn + 1}: the lock is free, but was not granted")
                party.lock.release()
            except Exception as error:
                raise Broken(f"turn {turn + 1}: {error}") from error
