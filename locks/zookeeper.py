"""zookeeper: an ephemeral, sequential node. The lowest number has the lock. Uses kazoo's Lock recipe.

    A: create /locks/N/…__lock__0000000000 (ephemeral) → lowest: A has it, number czxid 33
    B: create /locks/N/…__lock__0000000001 (ephemeral) → not the lowest: watches the node before its own
    A: (paused past its session's time-out: no heartbeat)
    server: A's session expires, its node is gone; B's watch fires                 B has it, number czxid 41
    B: read 100, write 120
    A: (awake; its client does not know yet) write 110                             B's 20 are gone

Guarantees   mutual exclusion while the holder's session lives, in the order of arrival. A crashed holder's node goes
             with its session. The ensemble forgets nothing that a majority has written. Each waiter wakes alone (no
             herd). The heartbeat keeps a slow holder's lock.
Breaks when  the holder is paused or cut off past its session's time-out, and continues to write. As with every
             lease, only the store can refuse it. So it does not withstand `partition`: in `manage.py faults` the
             struck worker, cut off for 2.5 sessions, overwrote what the next holder had written. `.fencing_token` is
             the node's czxid, which is the ensemble's transaction number. It grows across all locks and restarts. The
             sequence number in the node's name would not serve: it restarts when the parent node is removed.
Costs        4 round trips to acquire (check the parent, create, list, one read for the number), 2 more to wait (set a
             watch, list again), 1 delete to release. Create and delete are writes through the ensemble. Each process
             has a session with heartbeats.
Waiting      The wait time is exact while the ensemble answers. A silent ensemble is reported as LockUnavailable at the
             end of the wait time. But each request has at least GRACE (1 s, so a wait of 0.5 s becomes 1 s), because
             a slow answer, or a first connection, does not mean that the ensemble is silent; a caller that waits 0 s
             would never get in. Each request has at most CONNECT (5 s), also without a wait time.
Explorer     `manage.py explore` has no gate for kazoo, so this lock is `not-run` there. docs/explorer.md ("ZooKeeper")
             names the three things that a gate has to do. `manage.py faults` tries it on a real ZooKeeper.
Source       ZooKeeper, "Recipes: Locks"; kazoo.recipe.lock.Lock.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from kazoo.exceptions import ConnectionLoss, KazooException, NoNodeError
from kazoo.exceptions import LockTimeout as KazooLockTimeout
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.recipe.lock import Lock as KazooLock

from locks.base import Lock
from locks.errors import LockLost, LockNotHeld, LockUnavailable
from locks.hazards import Hazard
from locks.timing import ends_at, milliseconds
from locks.zookeeper_client import Alarm, Asking, client_of

LONGEST_SESSION = 2_147_483  # seconds: the protocol has 32 bits for the milliseconds


class ZooKeeperLock(Lock):
    """kazoo's Lock, with the node's czxid as its fencing number."""

    slug = "zookeeper"
    title = "ZooKeeper: ephemeral sequential node (kazoo)"
    source = 'C2, E1: ZooKeeper; "Recipes: Locks", kazoo (F6)'
    guarantees = "mutual exclusion while the holder's session lives, in order of arrival"
    breaks_when = "the holder is paused or cut off past its session's time-out, and continues to write"
    round_trips = "4 + 1, of which 2 through the ensemble"
    withstands = frozenset(
        {
            Hazard.CONTENTION,
            Hazard.CRASH,
            Hazard.WORKER_CRASH,
            Hazard.OVERRUN,
            Hazard.FOREIGN_RELEASE,
            Hazard.WAITER_INTERRUPTED,
            Hazard.SERVER_RESTART,
            Hazard.FAILOVER,
            Hazard.SPLIT_BRAIN,
            Hazard.LOST_REPLY,
            Hazard.EVICTION,
            Hazard.CLOCK_JUMP,
            Hazard.DATABASE_RESTART,
            Hazard.SESSION_KILLED,
            Hazard.TRANSACTION_POOLER,
        }
    )

    def __init__(self, name: str, *, zookeeper: str, lease: float = 10.0) -> None:
        """`zookeeper`: hosts, as kazoo takes them. `lease`: seconds after which a silent session expires. The ensemble
        may choose another value: it usually grants 2 to 20 of its ticks, so 4 to 40 s."""
        super().__init__(name)
        milliseconds(lease, longest=LONGEST_SESSION)
        self.hosts, self.lease = zookeeper, lease
        self._lock: Any = None
        self._client: Any = None
        self._session = self._process = 0  # those that created the node

    def acquire(self, timeout: float | None = None) -> bool:
        """Raises LockUnavailable if the ensemble cannot be reached."""
        if not self.hosts:
            raise LockUnavailable(f"{self.name}: set ZOOKEEPER_HOSTS to the hosts of an ensemble")
        deadline = ends_at(timeout)
        try:
            self._client = client_of(self.hosts, self.lease, deadline)
            lock: Any = KazooLock(Asking(self._client, deadline), self.path)
            lock.wake_event = Alarm(deadline)
            self._queue(lock, timeout)
        except KazooLockTimeout:
            return False
        except (KazooException, KazooTimeoutError) as error:
            raise LockUnavailable(f"{self.name}: ZooKeeper cannot be reached ({error!r})") from error
        return True

    def _queue(self, lock: Any, timeout: float | None) -> None:
        try:
            if not lock.acquire(timeout=timeout):  # the wait time ended while a reply was being lost
                raise KazooLockTimeout("not granted in time")
            stat = lock.client.exists(f"{self.path}/{lock.node}")
            if stat is None:
                raise LockUnavailable(f"{self.name}: the session ended while the lock was being taken")
            lock.client.deadline = None
            # the client may have its next session already
            self._session, self._process = stat.ephemeralOwner, os.getpid()
            self._lock, self.fencing_token = lock, stat.czxid
        except Exception:
            self._withdraw(lock)  # kazoo tries this only once
            raise
        except BaseException:
            self._leave(
                lock
            )  # interrupted: its node would stay in the queue, and block every waiter behind it
            raise

    def _leave(self, lock: Any) -> None:
        """Delete the lock's node, which is found by its prefix: the interrupt may have cut off the reply with its name.
        The ensemble answers a session's requests in order, so a create that is under way is seen. If the ensemble
        does not answer within the session's time-out, it removes the node itself."""
        with suppress(KazooException, KazooTimeoutError):
            for node in self._client.get_children_async(self.path).get(timeout=self.lease):
                if node.startswith(lock.prefix):
                    self._client.delete_async(f"{self.path}/{node}").get(timeout=self.lease)

    def _withdraw(self, lock: Any) -> None:
        """Do the same in the background, as soon as the ensemble can be reached, however often the connection is lost
        before that. Requests wait in the client while it reconnects. If the session ends, the node goes with it."""
        client, path = self._client, self.path

        def ask() -> None:
            client.get_children_async(path).rawlink(delete)

        def delete(found: Any) -> None:
            for node in () if lost(found) or found.exception else found.value:
                if node.startswith(lock.prefix):
                    client.delete_async(f"{path}/{node}").rawlink(lost)

        def lost(answer: Any) -> bool:
            if isinstance(answer.exception, ConnectionLoss):
                ask()
                return True
            return False

        ask()

    def release(self) -> None:
        """Raises LockNotHeld if this process does not hold it, LockLost if the node was already gone."""
        if self._lock is None or self._process != os.getpid():
            raise LockNotHeld(f"{self.name}: release without holding it")
        lock, self._lock = self._lock, None
        try:
            lock.client.delete(f"{self.path}/{lock.node}")
        except NoNodeError as error:
            raise LockLost(
                f"{self.name}: the session had ended before the release; re-read what was written inside"
            ) from error
        except (KazooException, KazooTimeoutError) as error:
            self._withdraw(lock)  # the whole process shares the session, which may live on
            raise LockUnavailable(
                f"{self.name}: ZooKeeper cannot be reached; the node is deleted once it can, or when the session ends"
            ) from error
        except BaseException:
            self._leave(lock)
            raise

    def seen(self, number: int) -> None:
        """Report that a store has seen `number`. There is nothing to do: an ensemble's transaction numbers only grow.
        If the ensemble is set up again from nothing, the store refuses everyone until its number is reset by hand."""

    @property
    def path(self) -> str:
        """A node for each name. ZooKeeper does not allow nodes called "." or ".."."""
        node = quote(self.name, safe=":@=+")
        return f"/locks/{node if node.strip('.') else node.replace('.', '%2E')}"

    @property
    def held(self) -> bool:
        """Also False once this process's client knows that it is cut off or has a new session, and in a forked child,
        which has no client."""
        if self._lock is None or self._process != os.getpid() or not self._client.connected:
            return False
        return bool(self._client.client_id[0] == self._session)
