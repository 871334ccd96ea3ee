"""The fencing number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.contract.arena import Arena
from tests.contract.case import case
from tests.contract.promises import demand

HAND_OVERS = 10_000


@case("fencing")
def fencing(arena: Arena, lock: Any) -> None:
    """10,000 hand-overs between two clients, every tenth by expiry, and the scripts forgotten now and then. Each number
    is larger than all before it."""
    quick = replace(arena.site, redis=arena.site.nodes[0])  # a server that does not sync its disk
    with arena.fight(lock, lease=60.0) as fight:
        parties, last = [fight.party(quick), fight.party(quick)], -1
        admin = arena.admins[1]
        for turn in range(HAND_OVERS):
            party, late = parties[turn % 2], turn % 10 == 9
            demand(party.takes(), f"hand-over {turn + 1}: the lock is free, but was not granted")
            number = party.lock.fencing_token
            demand(number is not None and number > last, f"hand-over {turn + 1}: {number} after {last}")
            last = number
            if late:
                admin.pexpire(fight.name, 0)
            if turn % 1000 == 999:
                admin.script_flush()
            party.leaves()
