"""Entries of a stream are numbered by virtual time. `XADD key *` would use the server's clock, so `<ms>-*` is sent.

One other thing in a stream depends on the server's clock: how long a message has been pending (XCLAIM, XAUTOCLAIM,
XPENDING with IDLE). The explorer reports such commands, and decides no schedule by them.
"""

from __future__ import annotations

from collections.abc import Sequence

_FLAGS = (b"NOMKSTREAM", b"KEEPREF", b"DELREF", b"ACKED")
_TRIM = (b"MAXLEN", b"MINID")
_IDLE = frozenset({b"XCLAIM", b"XAUTOCLAIM"})
IDLE = "{name} asks for how long a message has been pending, and that goes by the server's own clock"


def numbered(words: Sequence[bytes], clock: int) -> Sequence[bytes]:
    """What to send in place of an XADD. `clock`: the time of day, in ms."""
    at = 2
    while at < len(words) and (word := words[at].upper()) in (*_FLAGS, *_TRIM, b"LIMIT"):
        at += 1 if word in _FLAGS else 2
        at += word in _TRIM and words[at - 1] in (b"=", b"~")
    return [*words[:at], b"%d-*" % clock, *words[at + 1 :]] if words[at : at + 1] == [b"*"] else words


def by_its_clock(words: Sequence[bytes], script: bytes | None) -> bool:
    """Does the command, or the script that it calls, ask how long a message has been pending?"""
    name = words[0].upper()
    asked = name in _IDLE or (name == b"XPENDING" and b"IDLE" in [word.upper() for word in words])
    return asked or (script is not None and any(each in script.upper() for each in _IDLE))
