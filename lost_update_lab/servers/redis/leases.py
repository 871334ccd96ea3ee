"""Leases that are virtual from the command that gives them: a server's own clock never ends one.

    the worker sends      SET lock a7f3 NX PX 5
    the server is asked   SET lock a7f3 NX PX 1099516346368        2⁴⁰ + 4½ · 2²⁰ ms: 35 years, and in it the 5 ms
    a look sees           PTTL 1099516346361                       however slow the machine is, that says 5 ms

The explorer notes the end of the lease in virtual time, and removes the key when that time has come. Nothing has to be
written to the server meanwhile, so no WATCH breaks. What a worker asks about its leases (TTL, EXPIRE … GT) is answered
in virtual time too.

A lease that is given in another way (RESTORE, a field of a hash, a function) is noticed: inconclusive.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lost_update_lab.model.coded_lease import coded

_UNIT = {b"EX": 1000, b"PX": 1, b"EXAT": 1000, b"PXAT": 1}
_EXPIRE = {b"EXPIRE": b"EX", b"PEXPIRE": b"PX", b"EXPIREAT": b"EXAT", b"PEXPIREAT": b"PXAT"}
#: commands that may give a lease
GIVING = frozenset({b"SET", b"GETEX", b"SETEX", b"PSETEX", *_EXPIRE})
#: words that let a field of a hash end, in a command or in a script; and the options by which they do
_FIELDS = re.compile(rb"\b(HP?EXPIRE(AT)?|HSETEX|HGETEX)\b", re.IGNORECASE)
FIELD = "{name} lets a field of a hash end, and that goes by the server's own clock"
BY_A_KEY = "give the lease to a key of its own, by SET … PX or by PEXPIRE"
UNCODED = "the lease of {key} was given in a way that no gate sees, so the server's own clock would end it"
BY_SET = (
    "give it by SET, by EXPIRE or by a script that the worker itself sends, and as a length of time (PX, EX): not as a "
    "moment (PXAT, EXPIREAT), by a function or by RESTORE"
)
#: a command that answers 0 and does nothing
_NOTHING = [b"EXISTS", b""]


def of_a_field(words: Sequence[bytes], script: bytes | None) -> bool:
    """Does the command, or the script that it calls, let a field of a hash end by itself?"""
    return bool(_FIELDS.fullmatch(words[0]) or (script and _FIELDS.search(script)))


def given(words: Sequence[bytes], clock: int, left: Mapping[str, int], serial: int = 0) -> Sequence[bytes]:
    """What to ask the server in place of a command that may give a lease. `clock`: the time of day, in ms. `left`:
    the ms that each lease has left. `serial`: the number of this grant."""
    name = words[0].upper()
    if name in (b"SETEX", b"PSETEX"):
        ms = _length(b"EX" if name == b"SETEX" else b"PX", words[2], clock)
        return [b"PSETEX", words[1], b"%d" % coded(ms, serial), *words[3:]] if ms else words
    if name in _EXPIRE:
        return (
            _expire(words, _length(_EXPIRE[name], words[2], clock), left, serial) if len(words) > 2 else words
        )
    first = 3 if name == b"SET" else 2
    for at in range(first, len(words) - 1):
        if (unit := words[at].upper()) in _UNIT:
            if not (ms := _length(unit, words[at + 1], clock)):
                return _over(words, at + 1)
            return [*words[:at], b"PX", b"%d" % coded(ms, serial), *words[at + 2 :]]
    return words


def _expire(words: Sequence[bytes], ms: int | None, left: Mapping[str, int], serial: int) -> Sequence[bytes]:
    if ms is None:  # it removes the key at once, or is no number
        return _over(words, 2)
    options = [word for word in words[3:] if word.upper() not in (b"GT", b"LT")]
    now = left.get(words[1].decode(errors="backslashreplace"))
    for only in (word.upper() for word in words[3:]):
        if only == b"GT" and (now is None or ms <= now):
            return _NOTHING
        if only == b"LT" and now is not None and ms >= now:
            return _NOTHING
    return [b"PEXPIRE", words[1], b"%d" % coded(ms, serial), *options]


def _over(words: Sequence[bytes], at: int) -> Sequence[bytes]:
    """A time that is over on the virtual clock is over on the server's own one, too."""
    by_clock = words[0].upper().endswith(b"AT") or words[at - 1].upper() in (b"EXAT", b"PXAT")
    over = by_clock and words[at].isdigit() and int(words[at])
    return [*words[:at], b"1", *words[at + 1 :]] if over else words


def _length(unit: bytes, value: bytes, clock: int) -> int | None:
    """The length in ms. None: the lease is over at once, or the value is not a number."""
    try:
        ms = int(value) * _UNIT[unit]
    except ValueError:
        return None
    ms -= clock if unit.endswith(b"AT") else 0
    return ms if ms > 0 else None
