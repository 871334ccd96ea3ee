"""The numbered databases of one server. The explorer looks at one of them, and puts its keys back after a schedule.

A key in another one would stay there from schedule to schedule: after the first, each would find a lock that is held,
or a request that was seen before, and nothing would ever go wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

from lost_update_lab.model.errors import Broken
from lost_update_lab.servers.redis.scripts import called

ANOTHER = "it uses Redis database {used}, and the explorer was given database {given} of that server"
IN_ONE_NUMBER = "for the trial, give all clients the same numbered database (?db=0), and the explorer, too"
#: … and what moves keys there
MOVES = "{name} reaches the keys of another numbered database"
_MOVE = frozenset({b"MOVE", b"SWAPDB"})


def of_another(words: Sequence[bytes], script: bytes | None, used: int, given: int) -> Broken | None:
    """`used`: the database of the command's connection."""
    name = words[0].upper()
    if name == b"SELECT" and len(words) > 1:
        used = int(words[1]) if words[1].isdigit() else given
    if used != given:
        return Broken(ANOTHER.format(used=used, given=given), IN_ONE_NUMBER)
    moves = name in _MOVE or (name == b"COPY" and b"DB" in [each.upper() for each in words[3:]])
    if moves or (script and (called(script) or set()) & {*_MOVE, b"SELECT"}):
        return Broken(MOVES.format(name=name.decode(errors="replace")), IN_ONE_NUMBER)
    return None
