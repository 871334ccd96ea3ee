"""A command that is about to be sent to Redis: can a schedule repeat its answer, and does a look show what it does?"""

from __future__ import annotations

from collections.abc import Sequence

from lost_update_lab.gates.redis import unknown_scripts
from lost_update_lab.gates.redis.connections import Gated
from lost_update_lab.model.errors import Broken, ClockDecides
from lost_update_lab.model.workers import Task
from lost_update_lab.schedule.world import World
from lost_update_lab.servers import random_commands
from lost_update_lab.servers.redis.at_work import asks_who_is_at_work
from lost_update_lab.servers.redis.leases import BY_A_KEY, BY_SET, FIELD, UNCODED, of_a_field
from lost_update_lab.servers.redis.numbered import of_another
from lost_update_lab.servers.redis.own_clock import by_its_clock
from lost_update_lab.servers.redis.streams import least_idle


def beyond(world: World, task: Task, gated: Gated, words: Sequence[bytes]) -> Broken | None:
    """Does the server's own clock decide what it answers, or chance? Does it touch what no look shows?"""
    server = gated.server
    unseen = server.library.unseen(words)
    code = server.library.text(words)
    if found := (
        of_another(words, code, gated.database, server.database)
        or unknown_scripts.goes_on(task.worker, words)
        or random_commands.of_redis(words, code)
        or by_its_clock(words, code)
        or asks_who_is_at_work(words, code)
    ):
        return found
    if key := server.uncoded:
        return Broken(UNCODED.format(key=key), BY_SET)
    if of_a_field(words, code):
        return Broken(FIELD.format(name=words[0].decode()), BY_A_KEY)
    if unseen:
        return unseen
    if asks_since_when(world, task, words) and not server.timed:
        server.becomes_timed()
        return ClockDecides("Redis")
    return None


def asks_since_when(world: World, task: Task, words: Sequence[bytes]) -> bool:
    """Does the command ask how long a message has been pending? Then its answer changes by itself."""
    least = least_idle(words)
    if least is not None:
        task.timed, world.longest = True, max(world.longest, least * 1000)
    return least is not None
