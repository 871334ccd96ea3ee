"""The gate of redis-py where no server is asked: real code is told what is known (runs/fed_run.py).

What a client has read is noted exactly (`repr`), so it can be handed out again. Its connection stays connected, and
nothing passes it.
"""

from __future__ import annotations

from ast import literal_eval
from collections import deque
from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from typing import Any

import redis

from lost_update_lab.adapters import redis_py
from lost_update_lab.gates.redis.connections import Gated, becomes
from lost_update_lab.model.errors import Unanswered, Unknown
from lost_update_lab.model.workers import Standing, State, Task
from lost_update_lab.servers.redis.commands import UNANSWERED, subscribes

_LOST = "Connection closed by server."


def fed(run: Any, task: Task, gated: Gated, command: Any) -> Standing:
    """The next command. `run`: a FedRun. `command`: as it was recorded."""
    words, raw = gated.outbox.popleft()
    if gated.subscribed or subscribes(words) or raw.startswith(UNANSWERED):
        run.refuse(task)
    command.stand(run, task)
    op = task.op
    assert op is not None
    while True:
        yield
        try:
            command.turn(run, task, run.recording)
        except Unknown as unknown:
            run.refuse(task, unknown)
        if task.state is State.RUN:
            break
    becomes(gated, op, words)
    gated.op, gated.heard, gated.checked_out = op, task.heard, False


@lru_cache(1 << 12)
def _value(told: bytes) -> Any:
    """What its `repr` stands for. Raises ValueError and SyntaxError."""
    return literal_eval(told.decode())


def reply(run: Any, task: Task, connection: Any, gated: Gated) -> Any:
    """What the client reads. Raises redis.RedisError."""
    op, gated.op, gated.recorded = gated.op, None, None
    heard, gated.heard = gated.heard, None
    if op is None:
        run.refuse(task)
    if isinstance(heard, bytes):
        try:
            return deepcopy(_value(heard))
        except (ValueError, SyntaxError):
            run.refuse(task)
    if isinstance(heard, tuple) and heard[0] == "error":
        kind: Any = gated.server.answers.raised.get(heard[1])
        if kind is None:
            run.refuse(task, Unanswered())
        raise kind(heard[1])
    if heard != "lost" and not (isinstance(heard, tuple) and heard[0] == "broken"):
        run.refuse(task)
    gated.outbox.clear()
    connection.disconnect()
    raise redis.ConnectionError(_LOST) if heard == "lost" else heard[1](heard[2])


class ConnectionsBefore:
    """What the gate knew of each connection before the worker was fed."""

    def __init__(self) -> None:
        self._before: dict[Any, tuple[Gated, Any]] = {}

    def uses(self, connection: Any) -> None:
        """The worker is about to use it."""
        gated = getattr(connection, "explorer", None)
        if connection not in self._before and gated is not None:
            own = replace(
                gated, outbox=deque(gated.outbox), arrived=deque(gated.arrived), batch=list(gated.batch)
            )
            self._before[connection] = gated, redis_py.socket(connection)
            connection.explorer = own

    def end(self) -> None:
        for connection, (gated, socket) in self._before.items():
            same = socket is not None and redis_py.socket(connection) is socket
            connection.explorer = gated if same else None
        self._before.clear()
