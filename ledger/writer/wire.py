"""The protocol between callers and owner: MessagePack after a length of four bytes.

    caller → owner    Hello(secret, worker)                          once, first
    caller → owner    Order(window, [Request(key, fingerprint, [(account, amount), …]), …])
    owner → caller    [[balance after, …] or "why it was refused" or None (its key was taken), …]

The entries of an order have the ids `window` + 0, 1, 2, … in the order of its lines. `window` is the second of the
request and 8 random bytes. An order that is sent again has the same window, so the owner and its successor can tell it
from another order with the same keys.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from ledger.posting import DIGITS

#: bytes of one message; a window of 10,000 postings has some 2 MB
LONGEST = 16_000_000
LONGEST_HELLO = 1_000
LONGEST_KEY = 100  # characters
HEADER = 4
RECEIVE = 65_536  # bytes at a time; for a buffer of 128 KiB or more, malloc would ask the kernel each time

Told = list[int] | str | None


class Hello(msgspec.Struct, array_like=True):
    """The first message of a connection: the owner's secret and the caller's name."""

    secret: str
    worker: Annotated[str, Meta(max_length=100)]


class Request(msgspec.Struct, array_like=True, gc=False):
    """One posting on its way to the owner."""

    key: Annotated[str, Meta(min_length=1, max_length=LONGEST_KEY)]
    fingerprint: Annotated[str, Meta(min_length=DIGITS, max_length=DIGITS)]
    lines: list[tuple[str, int]]


class Order(msgspec.Struct, array_like=True, gc=False):
    """The requests that one caller sends together."""

    window: Annotated[str, Meta(pattern="^[0-9a-f]{24}$")]
    requests: list[Request]


class TooLong(ValueError):
    """The other side announces a message above the limit."""


encode = msgspec.msgpack.Encoder().encode
read_hello = msgspec.msgpack.Decoder(Hello).decode
read_order = msgspec.msgpack.Decoder(Order).decode
read_answers = msgspec.msgpack.Decoder(list[Told]).decode


def frame(message: object) -> bytes:
    """Return `message` with its length in front."""
    body = encode(message)
    return len(body).to_bytes(HEADER, "big") + body


def cut(received: bytes | bytearray, longest: int = LONGEST) -> tuple[bytes | bytearray | None, int]:
    """Return the body of the first message of `received` and how many bytes it took; None: it is incomplete.
    Raises TooLong."""
    if len(received) < HEADER:
        return None, 0
    end = HEADER + int.from_bytes(received[:HEADER], "big")
    if end > HEADER + longest:
        raise TooLong(f"a message of {end} bytes: {longest} at most")
    return (received[HEADER:end], end) if len(received) >= end else (None, 0)
