"""faults: real processes and servers, and each hazard really done to them. One hazard a file."""

from __future__ import annotations

from loadtest.faults.base import Adversary
from loadtest.faults.crash_holding import CrashHolding
from loadtest.faults.database_restart import DatabaseRestart
from loadtest.faults.eviction import Eviction
from loadtest.faults.failover import Failover, FailoverRelease
from loadtest.faults.lost_reply import LostReply
from loadtest.faults.overrun import Overrun
from loadtest.faults.partition import Partition, PartitionOneWay, SlowNetwork
from loadtest.faults.pause import Pause
from loadtest.faults.release_foreign import ReleaseForeign
from loadtest.faults.renewal_dies import RenewalDies
from loadtest.faults.renewal_lives import RenewalLives
from loadtest.faults.server_restart import ServerRestart, ServerRestartAlways, ServerRestartEverysec
from loadtest.faults.session_killed import SessionKilled
from loadtest.faults.waiter_interrupted import WaiterInterrupted
from loadtest.faults.zookeeper_expiry import ZooKeeperExpiry

__all__ = ["HAZARDS", "Adversary"]

#: The only list.
HAZARDS: dict[str, type[Adversary]] = {
    hazard.slug: hazard
    for hazard in (
        CrashHolding,
        Pause,
        Overrun,
        ReleaseForeign,
        RenewalDies,
        RenewalLives,
        WaiterInterrupted,
        ServerRestart,
        ServerRestartEverysec,
        ServerRestartAlways,
        Failover,
        FailoverRelease,
        Partition,
        PartitionOneWay,
        SlowNetwork,
        LostReply,
        Eviction,
        SessionKilled,
        DatabaseRestart,
        ZooKeeperExpiry,
    )
}
