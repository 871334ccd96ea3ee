"""Times in rows that are yet to come: the leases that are kept in tables.

    lock(name, owner, deadline)     ('till 1', 'A', 10 s from now)  →  lock[till 1].deadline ends in 10 s

Time does not move past such an end unnoticed: it is a timer like a key's lease in Redis, and what everyone can see is
not the same before and after it. So a waiter looks again when it has passed, in whatever phase its polls are.
"""

from __future__ import annotations

from lost_update_lab.model.bounds import SECOND

#: a name → its end, in µs of the server's clock since the start of the schedule
Ends = tuple[tuple[str, int], ...]
#: what ends later than this is no lease: an account's expiry, a token's
FURTHEST = 600 * SECOND


class Deadlines:
    """Those that were yet to come when they were first seen. (A time that is written down is over at once.)"""

    def __init__(self) -> None:
        self._kept: frozenset[tuple[str, int]] = frozenset()

    def look(self, found: Ends, clock: int) -> None:
        """`found` is committed now, and the server's clock shows `clock`."""
        later = (each for each in found if clock + 1 < each[1] <= clock + FURTHEST)
        self._kept = self._kept.intersection(found).union(later)

    def leases(self, clock: int, ahead: int) -> dict[str, int]:
        """When each ends, in virtual time: the server's clock has jumped `ahead` of it."""
        return {name: at - ahead for name, at in self._kept if at > clock}

    def over(self, clock: int) -> bytes:
        """Those that have passed, as a part of what everyone can see."""
        passed = sorted(name for name, at in self._kept if at <= clock)
        return f"over: {passed}\n".encode() if passed else b""

    def copy(self) -> Deadlines:
        twin = Deadlines()
        twin._kept = self._kept
        return twin
