"""faults: real processes and servers, and each hazard really done to them. One hazard a file."""

from __future__ import annotations

from loadtest.faults.base import Adversary
from loadtest.faults.clock_jump import ClockJump, ClockJumpBack, ClockJumpClient, ClockJumpClientBack
from loadtest.faults.connection_exhaustion import ConnectionExhaustion
from loadtest.faults.crash_holding import CrashHolding
from loadtest.faults.database_restart import DatabaseRestart
from loadtest.faults.deadlock import Deadlock
from loadtest.faults.eviction import Eviction
from loadtest.faults.failover import Failover, FailoverRelease
from loadtest.faults.lost_reply import LostReply, LostReplyRetried
from loadtest.faults.overrun import Overrun
from loadtest.faults.partition import Partition, PartitionOneWay, SlowNetwork
from loadtest.faults.pause import Pause
from loadtest.faults.release_foreign import ReleaseForeign
from loadtest.faults.renewal_dies import RenewalDies
from loadtest.faults.renewal_lives import RenewalLives
from loadtest.faults.replica_lag import ReplicaLag
from loadtest.faults.server_restart import ServerRestart, ServerRestartAlways, ServerRestartEverysec
from loadtest.faults.session_killed import SessionKilled
from loadtest.faults.split_brain import SplitBrain
from loadtest.faults.stampede import Stampede
from loadtest.faults.waiter_interrupted import WaiterInterrupted
from loadtest.faults.worker_crash import WorkerCrash
from loadtest.faults.zookeeper_expiry import ZooKeeperExpiry

__all__ = ["HAZARDS", "Adversary"]

#: The only list.
HAZARDS: dict[str, type[Adversary]] = {
    hazard.slug: hazard
    for hazard in (
        CrashHolding,
        WorkerCrash,
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
        SplitBrain,
        Partition,
        PartitionOneWay,
        SlowNetwork,
        LostReply,
        LostReplyRetried,
        ClockJump,
        ClockJumpBack,
        ClockJumpClient,
        ClockJumpClientBack,
        Eviction,
        SessionKilled,
        DatabaseRestart,
        ReplicaLag,
        Deadlock,
        ZooKeeperExpiry,
        ConnectionExhaustion,
        Stampede,
    )
}
