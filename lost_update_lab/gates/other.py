"""The hook for any other client library: one call of it is one step (docs/explorer.md, 'Other clients').

It is for commands that the server answers at once. A command that waits in the server for another client (a row lock,
a blocking pop) has to hand on the turn meanwhile: `pending.blocked`, as `_drive` in step.py does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from lost_update_lab.model.commands import Op
from lost_update_lab.runs.place import beside, here
from lost_update_lab.schedule import pending
from lost_update_lab.servers.redis.bypass import made

T = TypeVar("T")


def step(
    server: str,
    text: str,
    call: Callable[[], T],
    *,
    reads: bool = False,
    lost: type[Exception] = ConnectionError,
) -> T:
    """Stand before the command until its turn comes, then `call()` it, and tell what it answered.

    `server`: its name in the exploration ("redis", "postgres"). `text`: the whole command, values included: two
    commands with the same text must be the same command. `reads`: it certainly changes nothing. `lost`: what this
    client raises when the connection breaks before the reply. Outside of an exploration this is just `call()`.
    """
    place = here()
    if place is None:
        return call()
    run, task, op = place.run, place.task, Op(server, text, text.encode(), reads=reads)
    if run.recorder:
        run.recorder.opaque("a client with a gate of its own")
    run.live(task, pending.standing(run, task, op))
    try:
        with beside():
            reply = call()
    except Exception as error:
        task.history.add(op.identity, repr(error).encode())
        pending.tell(run, task, op, f"{type(error).__name__}: {error}")
        raise
    finally:
        if not reads:
            run.servers[server].touched()
    task.history.add(op.identity, repr(reply).encode())
    pending.tell(run, task, op, str(reply))
    if place.task.loses_reply:
        run.record(task.worker.name, task.name, "lost-reply", "the reply is lost", "connection lost")
        task.history.add(b"lost")
        raise lost("the reply is lost")
    return reply


def known(address: str, number: int) -> None:
    """Declare that this connection to a Redis server passes a gate. `number`: its CLIENT ID."""
    made(address).add(number)
