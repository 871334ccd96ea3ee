"""Shared by the strategies that keep a balance in Redis: the hazards that such a balance survives."""

from __future__ import annotations

from ledger.stores.redis import RedisStore
from ledger.strategies.base import Strategy
from locks.hazards import Hazard

#: No misbehaviour or failure of a client loses money: no client holds anything, and one command writes it all. But
#: what the server forgets is gone, and the balance with it.
REDIS_HAZARDS = frozenset(
    {
        Hazard.CONTENTION,
        Hazard.CRASH,
        Hazard.WORKER_CRASH,
        Hazard.PAUSE,
        Hazard.OVERRUN,
        Hazard.RENEWAL_DIES,
        Hazard.RENEWAL_LIVES,
        Hazard.FOREIGN_RELEASE,
        Hazard.WAITER_INTERRUPTED,
        Hazard.PARTITION,
        Hazard.LOST_REPLY,
        Hazard.CLOCK_JUMP,
        Hazard.DATABASE_RESTART,
        Hazard.SESSION_KILLED,
        Hazard.DEADLOCK,
        Hazard.ZOOKEEPER_EXPIRY,
        Hazard.STAMPEDE,
        Hazard.CONNECTIONS,
    }
)


class RedisStrategy(Strategy):
    """A strategy that keeps each account in a Redis hash."""

    store: RedisStore
    stores = ("redis",)
