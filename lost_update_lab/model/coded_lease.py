"""The length of a virtual lease, written into a time that is too long for the server's own clock to end."""

from __future__ import annotations

#: ms on the server: for a lease of no length, and for each ms of a lease (half of it, 8 minutes, allows for a machine
#: that stands still); in virtual.lua too
BASE, SLOT = 1 << 40, 1 << 20
#: ms: the longest lease that can be coded, 50 days
MOST = (1 << 32) - 1

#: how many grants can be told apart: a lease that is given again in the same millisecond must not look the same; and
#: by how many ms, as EXEC gives what was queued later, or earlier, than another one
_SERIALS, _APART = 1 << 10, 1 << 9


def coded(ms: int, serial: int = 0) -> int:
    return BASE + min(ms, MOST) * SLOT - SLOT // 2 + apart(serial)


def apart(serial: int) -> int:
    """What the number of a grant adds, in ms: less than half a slot."""
    return serial % _SERIALS * _APART


def decoded(left: int) -> int | None:
    """The length, in ms, of a lease that has this many ms left on the server. None: it was given past the gates."""
    return -(-(left - BASE) // SLOT) if left > BASE // 2 else None
