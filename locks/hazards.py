"""What can go wrong: the words that claims and evidence share.

A strategy's `withstands` is a set of these; the lab measures each claim (`manage.py faults`,
`manage.py explore`) and a disagreement fails the run.
"""

from enum import StrEnum


class Hazard(StrEnum):
    """One thing that goes wrong during a trial. The value is the word used in commands, JSON and screens; what does it
    is in loadtest/faults/hazards/, in the file with the name."""

    CONTENTION = "contention"  # nothing fails: several workers merely want the same account at once
    CRASH = "crash-holding"
    WORKER_CRASH = "worker-crash"
    PAUSE = "pause"
    OVERRUN = "overrun"
    FOREIGN_RELEASE = "release-foreign"
    RENEWAL_DIES = "renewal-dies"
    RENEWAL_LIVES = "worker-dies-renewal-lives"
    WAITER_INTERRUPTED = "waiter-interrupted"
    SERVER_RESTART = "server-restart"
    FAILOVER = "failover"
    SPLIT_BRAIN = "split-brain"
    PARTITION = "partition"
    LOST_REPLY = "lost-reply"
    CLOCK_JUMP = "clock-jump"
    EVICTION = "eviction"
    SESSION_KILLED = "database-session-killed"
    DATABASE_RESTART = "database-restart"
    REPLICA_LAG = "replica-lag"
    DEADLOCK = "deadlock"
    ZOOKEEPER_EXPIRY = "zookeeper-session-expiry"
    CONNECTIONS = "connection-exhaustion"
    STAMPEDE = "stampede"


# A claim is a set of hazards that somebody listed. Nobody subtracts from "all": a hazard that is added later would
# become a claim that its author never made (tests/locks/test_hazards.py).

NONE: frozenset[Hazard] = frozenset()

#: what strikes the database or ZooKeeper and cannot touch a lock on another server: a transaction that dies
#: with its session leaves nothing behind, and the lock goes by its own rules
BESIDE_THE_LOCK = frozenset({Hazard.DATABASE_RESTART, Hazard.SESSION_KILLED, Hazard.ZOOKEEPER_EXPIRY})

#: a lease with an owner's token on one server: a dead holder's lock ends, and nobody frees another's lock
OWNED_LEASE = BESIDE_THE_LOCK | {
    Hazard.CONTENTION,
    Hazard.CRASH,
    Hazard.WORKER_CRASH,
    Hazard.RENEWAL_LIVES,
    Hazard.FOREIGN_RELEASE,
    Hazard.WAITER_INTERRUPTED,
    Hazard.LOST_REPLY,
}
