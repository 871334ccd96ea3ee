"""The server's clock as workers see it. `TIME`, the time that a lease has left, and its end are virtual, so a schedule
repeats itself.

A script is sent with its own text behind virtual.lua, which answers these in place of the server, and gives leases as
code (leases.py). SPOP, also by itself, takes the least members there, and not those that chance would choose. All else
is passed on to the server. For a script that was loaded past the gates see library.py.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files

from lost_update_lab.model.coded_lease import apart
from lost_update_lab.model.epoch import Epoch
from lost_update_lab.servers.redis.commands import packed
from lost_update_lab.servers.redis.leases import GIVING, given
from lost_update_lab.servers.redis.streams import numbered

#: the words by which a script uses the clock, in any case: TIME, TTL, EXPIRETIME, EXPIREAT, PXAT, GT, LT, XADD
_ASKS = re.compile(rb"TIME|TTL|EXPIREAT|XADD|\b[PE]XAT\b|['\"][GL]T['\"]", re.IGNORECASE)
_CALL = re.compile(rb"\b(?:redis|server)\.p?call\b")
#: … followed by the name of the command, as a literal, and by nothing that is put together with it
_CALLED = re.compile(rb"\b(?:redis|server)\.p?call\s*\(\s*['\"](\w+)['\"]\s*[,)]")
_BEFORE = files(__package__).joinpath("virtual.lua").read_bytes().rstrip(b"\n")
#: SPOP as a script: in place of the server, virtual.lua chooses. With a count, its reply is a set
_POP = b"""
local taken = redis.pcall('SPOP', KEYS[1], unpack(ARGV))
if not ARGV[1] or taken.err then return taken end
local set = {}
for _, each in ipairs(taken) do set[each] = true end
return {set = set}
"""
#: the first line of a script with flags
_SHEBANG = re.compile(rb"#!.*\n?")

#: the scripts that workers have sent, or call, by their SHA-1 in hexadecimal
_texts: dict[bytes, bytes] = {}


def virtual(words: Sequence[bytes], raw: bytes, now: int, left: Mapping[str, int], serial: int = 0) -> bytes:
    """Return what to send in place of `raw`. `now`: µs of the server's clock since the start of the run. `left`:
    milliseconds that each lease has left. `serial`: the number of the grant, if the script gives a lease."""
    name = words[0].upper()
    if name in GIVING:
        return packed(changed) if (changed := given(words, _clock(now), left, serial)) is not words else raw
    if name == b"XADD":
        return packed(numbered(words, _clock(now)))
    if name in (b"EVAL", b"EVAL_RO") or (name == b"SCRIPT" and words[1].upper() == b"LOAD"):
        note(words[2] if name == b"SCRIPT" else words[1])
    script = script_of(words)
    if script is None:
        return raw
    if name == b"SPOP":
        return packed([b"EVAL", _before(script, now, left, serial), b"1", *words[1:]])
    return packed(
        [b"EVAL_RO" if name.endswith(b"_RO") else b"EVAL", _before(script, now, left, serial), *words[2:]]
    )


def note(script: bytes) -> None:
    """EVALSHA may call it from now on."""
    _texts[number_of(script)] = script


def number_of(script: bytes) -> bytes:
    """By which EVALSHA calls it."""
    return hashlib.sha1(script, usedforsecurity=False).hexdigest().encode()


def script_of(words: Sequence[bytes]) -> bytes | None:
    """The text of the script that this command calls, if a gate has seen it; or as which it is sent."""
    name = words[0].upper()
    if name == b"SPOP" and len(words) > 1:
        return _POP
    if name in (b"EVAL", b"EVAL_RO"):
        return words[1]
    return _texts.get(words[1].lower()) if name in (b"EVALSHA", b"EVALSHA_RO") else None


@lru_cache(maxsize=1 << 10)
def called(script: bytes) -> frozenset[bytes] | None:
    """The commands that a script calls. None: the script computes their names."""
    found = _CALLED.findall(script)
    return frozenset(map(bytes.upper, found)) if len(found) == len(_CALL.findall(script)) else None


@lru_cache(maxsize=1 << 10)
def _may_ask(script: bytes) -> bool:
    return bool(_ASKS.search(script)) or called(script) is None


def asks_for_time(words: Sequence[bytes]) -> bool:
    """Does this command, or the script that it calls, ask what time it is?"""
    script = script_of(words)
    return words[0].upper() == b"TIME" or (script is not None and _tells_time(script))


#: the words by which a command gives a lease that depends on when it is given
_WHEN = frozenset({b"EXAT", b"PXAT", b"GT", b"LT"})


def goes_by_clock(words: Sequence[bytes]) -> bool:
    """Does it depend on the time, or on what is left of leases, at which it is sent?"""
    name, script = words[0].upper(), script_of(words)
    if script is not None:
        return name != b"SPOP" and _may_ask(script)
    return (
        name.endswith(b"AT")
        or name == b"XADD"
        or (name in GIVING and not _WHEN.isdisjoint(map(bytes.upper, words[2:])))
    )


@lru_cache(maxsize=1 << 10)
def _tells_time(script: bytes) -> bool:
    names = called(script)
    return names is None or b"TIME" in names


def time_of_day(now: int) -> tuple[int, int]:
    """What `TIME` returns, in seconds and µs. `now` is as in `virtual`."""
    return divmod(round(Epoch.shows) * 1_000_000 + now, 1_000_000)


def _clock(now: int) -> int:
    """The time of day in ms."""
    seconds, micros = time_of_day(now)
    return seconds * 1000 + micros // 1000


def _before(script: bytes, now: int, left: Mapping[str, int], serial: int) -> bytes:
    """The script as it is sent. If it does not ask for the time, this text never changes."""
    first = found[0] if (found := _SHEBANG.match(script)) else b""
    asks = _may_ask(script)
    seconds, micros = time_of_day(now) if asks else (0, 0)
    table = ", ".join(f"[{_quoted(key)}] = {each}" for key, each in sorted(left.items()) if asks)
    told = f"{{{table}}}, '{seconds}', '{micros}', {apart(serial)}) local server = redis "
    return first + _BEFORE + told.encode() + script[len(first) :]


def _quoted(key: str) -> str:
    return "'" + "".join(f"\\{byte:03d}" for byte in key.encode()) + "'"
