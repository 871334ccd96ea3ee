"""zookeeper-fenced: the ZooKeeper lock, and a ledger that registers its number, the czxid of the lock's node.

    A: lock → czxid 33; UPDATE … SET fence = 33 WHERE fence < 33; SELECT → 100   (paused: its session expires)
    B:                  lock → czxid 41; UPDATE … SET fence = 41 WHERE fence < 41; SELECT → 100; writes 120
    A: UPDATE … SET balance = 110 WHERE fence = 33 → 0 rows        refused; A locks again and reads again

Guarantees   what `fenced` guarantees: no lost update, whatever happens to the lock. The number comes from the
             ensemble's transaction log, so it is not lost with a server.
Breaks when  one writer does not check the number. A newly installed ensemble starts at low numbers: the ledger then
             refuses every caller until the accounts' numbers are reset by hand. No money is lost meanwhile.
Costs        the lock's round trips, and the two transactions of `fenced`.
Source       Hunt et al. 2010 (ZooKeeper); M. Kleppmann on fencing names the zxid.
"""

from __future__ import annotations

from typing import ClassVar

from ledger.strategies.fenced import Fenced
from ledger.strategies.sql import UNHURRIED_HAZARDS
from locks import LockFactory
from locks.hazards import Hazard
from locks.zookeeper import ZooKeeperLock


class ZooKeeperFenced(Fenced):
    """`fenced` with ZooKeeper's lock."""

    slug = "zookeeper-fenced"
    title = "ZooKeeper lock, and a ledger that checks its czxid"
    source = "Hunt et al. 2010 (F9); M. Kleppmann on fencing (F2)"
    guarantees = "no lost update, whatever happens to the lock"
    breaks_when = "one writer does not check the number"
    round_trips = "4 + 8 + 1"
    withstands: ClassVar[frozenset[Hazard]] = UNHURRIED_HAZARDS | {
        Hazard.PAUSE,
        Hazard.STAMPEDE,
        Hazard.TRANSACTION_POOLER,
    }
    withstands_on_mariadb = UNHURRIED_HAZARDS | {Hazard.STAMPEDE, Hazard.TRANSACTION_POOLER}
    factory: ClassVar[LockFactory] = ZooKeeperLock
