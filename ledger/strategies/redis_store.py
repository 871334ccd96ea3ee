"""What the strategies that keep a balance in Redis share: the hazards that such a balance survives."""

from __future__ import annotations

from ledger.stores.redis import RedisStore
from ledger.strategies.base import Strategy
from locks.hazards import Hazard

#: A client may do and suffer what it likes: nothing is held, and one command writes it all. But what the server
#: forgets is gone, and the balance with it.
REDIS_HAZARDS = frozenset(Hazard) - {
    Hazard.SERVER_RESTART,
    Hazard.FAILOVER,
    Hazard.SPLIT_BRAIN,
    Hazard.EVICTION,
    Hazard.REPLICA_LAG,
}


class RedisStrategy(Strategy):
    """A strategy whose accounts are hashes."""

    store: RedisStore
    stores = ("redis",)
