"""Commands that ask Redis who is connected, or who listens: no key shows that, so no state does.

A connection's name, its number and its age stay from schedule to schedule, as the connection does, and its end is no
step of its worker. A lock that goes by them (CLIENT SETNAME, or PUBSUB NUMSUB) would be judged by what other schedules
have left.
"""

from __future__ import annotations

from collections.abc import Sequence

from lost_update_lab.model.errors import Broken
from lost_update_lab.servers.redis.scripts import called

WHO_IS_CONNECTED = "{command} asks Redis who is connected, or who listens, which is in no key"
BY_A_KEY_OF_ITS_OWN = "note in a key who is at work: SET … NX, or a member of a sorted set"
_ASKS = {
    b"CLIENT": frozenset({b"LIST", b"INFO", b"GETNAME"}),
    b"PUBSUB": frozenset({b"CHANNELS", b"NUMSUB", b"NUMPAT", b"SHARDCHANNELS", b"SHARDNUMSUB"}),
}


def asks_who_is_at_work(words: Sequence[bytes], script: bytes | None) -> Broken | None:
    """`script`: the code that the command runs."""
    names = [word.upper() for word in words[:2]]
    asks = len(names) > 1 and names[1] in _ASKS.get(names[0], ())
    if not asks and not (script and (called(script) or set()) & _ASKS.keys()):
        return None
    command = b" ".join(words[: 2 if asks else 1]).decode(errors="replace")
    return Broken(WHO_IS_CONNECTED.format(command=command), BY_A_KEY_OF_ITS_OWN)
