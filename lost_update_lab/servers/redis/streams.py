"""Entries of a stream are numbered by virtual time. `XADD key *` would use the server's clock, so `<ms>-*` is sent.

How long a message has been pending (XCLAIM, XAUTOCLAIM, XPENDING) is virtual too, once a worker asks for it:

    a worker is given a message, 5 ms after the start    the server notes its own time, 1900000000000
    a look sees that, and sends          XCLAIM … TIME 549755895808      (5 + 2²⁵) · 2¹⁴ ms: a time in the past
    at 30,005 ms a worker sends          XAUTOCLAIM … 30000              is it pending for 30 s?
    the server is asked                  XAUTOCLAIM … 1350244104192      is it pending since (5 + 2²⁵) · 2¹⁴, or longer?

So the server's clock, which goes on meanwhile, decides nothing. A script that asks is reported, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_FLAGS = (b"NOMKSTREAM", b"KEEPREF", b"DELREF", b"ACKED")
_TRIM = (b"MAXLEN", b"MINID")
#: commands that ask how long a message has been pending; XPENDING does so in its long form
ASKING = frozenset({b"XCLAIM", b"XAUTOCLAIM", b"XPENDING"})
#: ms of the server's clock for each virtual one: between a command's sending and its execution it may go on for so long
SLOT = 1 << 14
#: ms by which all virtual times are later: a claim may say that a message has been pending since before the start
EARLIER = 1 << 25
#: what the server notes by itself is later than any coded time; in contents.lua too
OWN = 1 << 40


def numbered(words: Sequence[bytes], clock: int) -> Sequence[bytes]:
    """What to send in place of an XADD. `clock`: the time of day, in ms."""
    at = 2
    while at < len(words) and (word := words[at].upper()) in (*_FLAGS, *_TRIM, b"LIMIT"):
        at += 1 if word in _FLAGS else 2
        at += word in _TRIM and words[at - 1] in (b"=", b"~")
    return [*words[:at], b"%d-*" % clock, *words[at + 1 :]] if words[at : at + 1] == [b"*"] else words


def since(clock: int) -> int:
    """The time that the server shall note for a message that is delivered now. `clock`: ms since the start."""
    return (clock + EARLIER) * SLOT


def least_idle(words: Sequence[bytes]) -> int | None:
    """For how many ms a message must have been pending, so that the command touches it. None: it does not ask."""
    name = words[0].upper()
    if name not in ASKING or len(words) < 5:
        return None
    return _number(words[4]) if name != b"XPENDING" or words[3].upper() == b"IDLE" else 0


def asked(words: Sequence[bytes], clock: int, real: int, day: int) -> Sequence[bytes]:
    """What to send in place of such a command. `clock`: ms since the start; `real`: the server's own, in ms; `day`: the
    time of day at the start."""
    name, changed = words[0].upper(), list(words)
    if least := least_idle(words):
        changed[4] = b"%d" % max(1, real - since(clock - least))
    for at in range(5, len(words) - 1) if name == b"XCLAIM" else ():
        if (word := words[at].upper()) in (b"IDLE", b"TIME"):
            given = _number(words[at + 1])
            when = clock - given if word == b"IDLE" else given - day
            changed[at : at + 2] = [b"TIME", b"%d" % max(0, since(min(when, clock)))]
    return changed


def told(reply: Sequence[Any], clock: int, real: int) -> Sequence[Any]:
    """The answer to XPENDING's long form in virtual time: number, consumer, ms since it was delivered, how often."""
    return [
        [number, who, max(0, clock - ((real - idle) // SLOT - EARLIER)), count]
        for number, who, idle, count in reply
    ]


def _number(word: bytes) -> int:
    return int(word) if word.isdigit() else 0
