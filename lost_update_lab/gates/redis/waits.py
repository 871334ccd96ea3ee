"""A reply that may not come: to a blocking command, or a message of a subscription."""

from __future__ import annotations

from typing import Any

import redis

from lost_update_lab.adapters import redis_py
from lost_update_lab.gates.redis.connections import Gated, cut
from lost_update_lab.gates.redis.messages import waiting_for
from lost_update_lab.model.workers import Standing, Task
from lost_update_lab.schedule import faults, pending
from lost_update_lab.schedule.world import World
from lost_update_lab.servers.redis.commands import WAIT_COMMANDS
from lost_update_lab.servers.redis.server import RedisServer
from lost_update_lab.servers.redis.wire import readable

#: how long real replicas that all follow, or a disk, may take to confirm on a busy machine
CONFIRMED_WITHIN = 60.0


def until_readable(
    world: World, task: Task, connection: Any, gated: Gated, seconds: float | None, limit: float | None = None
) -> Standing:
    """Ends when a reply is there. The server answers in order: no reply after a second barrier means that it is
    blocked. `seconds`, `limit`: how long the server waits, and how long the client reads at most. None: for ever.
    Raises redis.TimeoutError when the client has read for so long."""
    op = gated.op
    if limit is not None and (seconds is None or limit < seconds):
        seconds = limit
    else:
        limit = None
    sure = op is not None and _will_be_confirmed(world, task, gated.server, op.text)
    if sure and redis_py.answers_within(connection, CONFIRMED_WITHIN):
        return
    for _ in range(2):  # the replies to two commands that came together may leave in any order
        gated.server.barrier()  # faster than to wait: the shortest time-out of a socket is a millisecond
        if readable(connection):
            return
    gated.asked = None  # when its reply comes is up to others
    if op is not None and not op.reads:
        gated.server.touched()  # one that waits may have changed something: XREADGROUP makes its consumer
    over: list[bool] = []
    subscription = gated.op is None

    def expire(world: World, task: Task) -> None:
        if subscription or limit is not None:
            over.append(True)
            world.wake(task, world.now)
        else:
            gated.server.unblock(gated.number)

    polls = seconds is not None
    while not readable(connection) and not over:
        task.op = waiting_for(task, gated.server.name)
        task.sent(connection, expire)
        yield from pending.blocked(world, task, seconds, polls)
        polls = False
    if limit is not None and not readable(connection):
        gated.server.end_sessions([connection], cut=True)
        cut(connection, gated)
        raise redis.TimeoutError("Timeout reading from socket")


def _will_be_confirmed(world: World, task: Task, server: RedisServer, command: str) -> bool:
    """Is it a WAIT, or WAITAOF, for replicas that all exist and follow?"""
    name, *numbers = command.split(" ")
    if name.encode() not in WAIT_COMMANDS:
        return False
    server.confirming.add(name)
    if server.lags:
        faults.charge(world, server.name)
        task.worker.struck = True
        return False
    return int(numbers[-2]) <= len(server.replica.processes)
