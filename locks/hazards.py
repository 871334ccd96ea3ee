"""What can go wrong: the vocabulary that claims and evidence share.

A strategy's `withstands` is a set of these hazards. The lab measures each claim (`manage.py faults`,
`manage.py explore`), and a disagreement fails the run.
"""

from enum import StrEnum


class Hazard(StrEnum):
    """One thing that goes wrong during a trial. Commands, JSON and screens use the value. The file of the same name in
    loadtest/faults/hazards/ inflicts it."""

    CONTENTION = "contention"  # nothing fails: several workers want the same account at once
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
    TRANSACTION_POOLER = "transaction-pooler"


# A claim is an explicit list of hazards. It is never "all but …": a hazard that is added later would become a claim
# that the author never made (tests/locks/test_hazards.py).

NONE: frozenset[Hazard] = frozenset()

#: hazards of the database or ZooKeeper, which cannot touch a lock on another server: a transaction that dies
#: with its session, or gets another one, leaves nothing behind, and the lock follows its own rules
BESIDE_THE_LOCK = frozenset(
    {
        Hazard.DATABASE_RESTART,
        Hazard.SESSION_KILLED,
        Hazard.TRANSACTION_POOLER,
        Hazard.ZOOKEEPER_EXPIRY,
    }
)

#: a lease with an owner's token on one server: a dead holder's lock expires, and nobody frees another's lock
OWNED_LEASE = BESIDE_THE_LOCK | {
    Hazard.CONTENTION,
    Hazard.CRASH,
    Hazard.WORKER_CRASH,
    Hazard.RENEWAL_LIVES,
    Hazard.FOREIGN_RELEASE,
    Hazard.WAITER_INTERRUPTED,
    Hazard.LOST_REPLY,
}
