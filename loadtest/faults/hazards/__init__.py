"""faults: real processes and servers, and each hazard really done to them. One hazard a file."""

from __future__ import annotations

from loadtest.faults.hazards.adversary import Adversary
from loadtest.faults.hazards.clock_jump import ClockJump, ClockJumpBack, ClockJumpClient, ClockJumpClientBack
from loadtest.faults.hazards.connection_exhaustion import ConnectionExhaustion
from loadtest.faults.hazards.crash_holding import CrashHolding
from loadtest.faults.hazards.database_restart import DatabaseRestart
from loadtest.faults.hazards.deadlock import Deadlock
from loadtest.faults.hazards.eviction import Eviction
from loadtest.faults.hazards.failover import Failover, FailoverRelease
from loadtest.faults.hazards.lost_reply import LostReply, LostReplyRetried
from loadtest.faults.hazards.overrun import Overrun
from loadtest.faults.hazards.partition import Partition, PartitionOneWay, SlowNetwork
from loadtest.faults.hazards.pause import Pause
from loadtest.faults.hazards.release_foreign import ReleaseForeign
from loadtest.faults.hazards.renewal_dies import RenewalDies
from loadtest.faults.hazards.renewal_lives import RenewalLives
from loadtest.faults.hazards.replica_lag import ReplicaLag
from loadtest.faults.hazards.server_restart import ServerRestart, ServerRestartAlways, ServerRestartEverysec
from loadtest.faults.hazards.session_killed import SessionKilled
from loadtest.faults.hazards.split_brain import SplitBrain
from loadtest.faults.hazards.stampede import Stampede
from loadtest.faults.hazards.waiter_interrupted import WaiterInterrupted
from loadtest.faults.hazards.worker_crash import WorkerCrash
from loadtest.faults.hazards.zookeeper_expiry import ZooKeeperExpiry

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
