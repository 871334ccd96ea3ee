"""fair-lock's short way, when something else was heard than usual: what it was, as far as it can be told here."""

from __future__ import annotations

from contextlib import suppress
from time import monotonic
from typing import Any

from locks.fair_lock.attempt import SILENT
from locks.fair_lock.client import FairLockClient
from locks.fair_lock.wire import ENOUGH, INCOMPLETE


def understood(
    client: FairLockClient, wire: Any, word: bytes, heard: bytes, *, quiet: bool, until: float
) -> Any:
    """Return the number, if the lock was handed over; else what the long way has to know: what came of the question
    and is below 0, or INCOMPLETE, when it has to read what was kept.

    Who is queued after a question aloud waits for the message a moment. `until`: what comes later may be old.
    """
    if quiet:
        return _told(client, wire, word, heard, SILENT, until) if heard else SILENT
    if heard[:2] == b":-" and heard.count(b"\n") == 1 and heard[-1:] == b"\n":
        reply = int(heard[1:])
        if client.direct:
            with suppress(OSError):
                if told := wire.hear(ENOUGH):
                    return _told(client, wire, word, told, reply, until)
        return reply
    wire.keep(heard)
    return INCOMPLETE


def _told(client: FairLockClient, wire: Any, word: bytes, heard: bytes, reply: int, until: float) -> Any:
    """`reply`: what came of the question before."""
    wire.keep(heard)
    told = wire.first()
    if told is INCOMPLETE:
        return reply
    if not isinstance(told, list):  # an error, perhaps with another reply on its way
        wire.disconnect()
        client.quiet = False
        return INCOMPLETE
    if told[0] == b"message":
        token, _, number = told[2].partition(b" ")
        # A process that was paused reads an old message: its lease may be over.
        if word.endswith(token + b"\r\n") and monotonic() < until:
            return int(number)
    return -1  # to ask again at once
