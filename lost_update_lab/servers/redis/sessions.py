"""The sessions that a Redis server has with the workers, as their gates know them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import redis


def gates(sessions: Sequence[Any]) -> list[Any]:
    """What the gates know of these connections (redis/connections.py)."""
    return [found for connection in sessions if (found := getattr(connection, "explorer", None))]


def end(ask: Callable[..., Any], sessions: Sequence[Any], cut: bool) -> None:
    """The server forgets at once their place in a queue, and their subscriptions. One that has neither is ended only if
    its client shall notice (`cut`): to connect again costs more than a schedule. `ask`: one round trip."""
    for gated in gates(sessions):
        if gated.number > 0 and (cut or gated.op or gated.mode or gated.listens):
            with suppress(redis.ResponseError):
                ask("CLIENT", "KILL", "ID", gated.number)
            gated.number = -1
