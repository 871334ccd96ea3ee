"""Kinds of strategies, by what has the last word: can a lock beside the database be trusted?"""

from __future__ import annotations

from ledger.strategies import find
from loadtest.trials import dependencies

VALKEY = "a lock on Valkey alone"
ZOOKEEPER = "a lock on ZooKeeper alone"
ON_ONE_MACHINE = "a lock on one machine"
FENCED = "a lock, its number checked in the write"
TABLE = "a lock that is a row"
DATABASE = "the database decides"
QUEUED = "Valkey keeps the balance, or is asked first"
UNPROTECTED = "no protection"
GROUPS = (VALKEY, ZOOKEEPER, ON_ONE_MACHINE, TABLE, FENCED, DATABASE, QUEUED)


def group_of(strategy: str) -> str:
    """Return its kind, derived from the strategy's properties and from the resources of its lock."""
    if not find(strategy).protects:
        return UNPROTECTED
    if find(strategy).checks_number:
        return FENCED
    asks = dependencies.asked(strategy)
    if "zookeeper" in asks:
        return ZOOKEEPER
    if "sql" in asks:
        return TABLE
    if dependencies.factory_of(strategy):
        return VALKEY if dependencies.asks_valkey(strategy) else ON_ONE_MACHINE
    return QUEUED if dependencies.asks_valkey(strategy) or find(strategy).stores == ("redis",) else DATABASE
