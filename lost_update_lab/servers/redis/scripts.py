"""The server's clock as scripts see it: `TIME` and what is left of a lease are virtual, so a schedule repeats itself.

A script that asks for them is sent with its own text behind a few lines that answer these two in the server's stead.
All else it asks the server itself. A script that was loaded past the gates is sent as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from lost_update_lab.model.bounds import EPOCH
from lost_update_lab.servers.redis.commands import packed

_ASKS = (b"TIME", b"TTL")
#: a lease that a script reads may have been counted down by the server since it was set to its virtual time
NEAR_MS = 1_000

_BEFORE = (
    "local redis = (function(real) local left = {%s} local function gate(ask) return function(name, ...) "
    "local word = string.upper(name) if word == 'TIME' then return {'%d', '%d'} end "
    "local reply = ask(name, ...) if word ~= 'PTTL' then return reply end "
    "local known = left[...] return known and reply <= known and reply > known - %d and known or reply end end "
    "return setmetatable({call = gate(real.call), pcall = gate(real.pcall)}, {__index = real}) end)(redis) "
)

#: by their SHA-1, in hexadecimal: what workers have sent
_texts: dict[bytes, bytes] = {}


def virtual(words: Sequence[bytes], raw: bytes, now: int, left: Mapping[str, int]) -> bytes:
    """Return what to send in the place of `raw`. `now`: µs of the server's clock since the start of the run; `left`:
    milliseconds that each lease has left."""
    name = words[0].upper()
    if name == b"EVAL" or (name == b"SCRIPT" and words[1].upper() == b"LOAD"):
        text = words[1] if name == b"EVAL" else words[2]
        _texts[hashlib.sha1(text, usedforsecurity=False).hexdigest().encode()] = text
    elif name != b"EVALSHA":
        return raw
    known = _texts.get(words[1].lower()) if name == b"EVALSHA" else words[1]
    if (
        name == b"SCRIPT"
        or known is None
        or known.startswith(b"#!")
        or not any(ask in known for ask in _ASKS)
    ):
        return raw
    return packed([b"EVAL", _before(now, left) + known, *words[2:]])


def script_of(words: Sequence[bytes]) -> bytes | None:
    """The text of the script that this command calls, if a gate has seen it."""
    name = words[0].upper()
    return words[1] if name == b"EVAL" else _texts.get(words[1].lower()) if name == b"EVALSHA" else None


def time_of_day(now: int) -> tuple[int, int]:
    """What `TIME` says, in seconds and µs; `now` as in `virtual`."""
    return divmod(round(EPOCH) * 1_000_000 + now, 1_000_000)


def _before(now: int, left: Mapping[str, int]) -> bytes:
    seconds, micros = time_of_day(now)
    table = ", ".join(f"[{_quoted(key)}] = {each}" for key, each in sorted(left.items()))
    return (_BEFORE % (table, seconds, micros, NEAR_MS)).encode()


def _quoted(key: str) -> str:
    return "'" + "".join(f"\\{byte:03d}" for byte in key.encode()) + "'"
