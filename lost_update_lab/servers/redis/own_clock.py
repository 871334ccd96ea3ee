"""Questions that Redis answers by its own clock, which is real: no schedule could give the same answer twice.

Leases and `TIME` are virtual (leases.py, scripts.py), and so is how long a message has been pending (streams.py), where
the command asks for nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lost_update_lab.model.errors import Broken
from lost_update_lab.servers.redis.streams import ASKING

PENDING = "{name} asks for how long a message has been pending, and that goes by the server's own clock"
BY_ITSELF = "send XCLAIM, XAUTOCLAIM or XPENDING by itself: those are told virtual times"
MEASURES = "{name}: the server measures that by its own clock, and no schedule sees the same twice"
NOTE_THE_TIME = (
    "write the time of the last use into a key (TIME, or the worker's clock), or give the key a lease"
)
#: command → the words after which it asks so; none: always
_MEASURED: dict[bytes, tuple[bytes, ...]] = {
    b"OBJECT": (b"IDLETIME", b"FREQ"),
    b"DEBUG": (b"OBJECT",),
    b"LASTSAVE": (),
}
_IN_A_SCRIPT = re.compile(
    rb"['\"](?:(OBJECT)['\"]\s*,\s*['\"](?:IDLETIME|FREQ)|(DEBUG)['\"]\s*,\s*['\"]OBJECT|(LASTSAVE))['\"]",
    re.IGNORECASE,
)


def by_its_clock(words: Sequence[bytes], script: bytes | None) -> Broken | None:
    """Does the command ask so, or the script that it calls?"""
    name = words[0].upper()
    if _pending(words, script):
        return Broken(PENDING.format(name=words[0].decode()), BY_ITSELF)
    if script is not None and (found := _IN_A_SCRIPT.search(script)):
        name = next(filter(None, found.groups())).upper()
    elif name not in _MEASURED or not _asks(words):
        return None
    return Broken(MEASURES.format(name=b" ".join([name, *_MEASURED[name][:1]]).decode()), NOTE_THE_TIME)


def _pending(words: Sequence[bytes], script: bytes | None) -> bool:
    if words[0].upper() == b"XINFO":
        return any(word.upper() in (b"CONSUMERS", b"FULL") for word in words[1:])
    return script is not None and any(each in script.upper() for each in (*ASKING, b"XINFO"))


def _asks(words: Sequence[bytes]) -> bool:
    asking = _MEASURED[words[0].upper()]
    return not asking or any(word.upper() in asking for word in words[1:2])
