"""zookeeper: an ephemeral, sequential node; the lowest number has the lock. By kazoo's Lock recipe.

    A: create /locks/N/…__lock__0000000000 (ephemeral) → lowest: A has it, number czxid 33
    B: create /locks/N/…__lock__0000000001 (ephemeral) → not the lowest: watches the node before its own
    A: (paused past its session's time-out: no heartbeat)
    server: A's session expires, its node is gone; B's watch fires                 B has it, number czxid 41
    B: read 100, write 120
    A: (awake; its client does not know yet) write 110                             B's 20 are gone

Guarantees   mutual exclusion while the holder's session lives, in the order of arrival; a crashed holder's node
             goes with its session; the ensemble forgets nothing that a majority has written. Each waiter wakes
             alone (no herd). The heartbeat keeps a slow holder's lock.
Breaks when  the holder is paused, or cut off, past its session's time-out and goes on writing: as with every
             lease, only the store can refuse it. So it does not withstand `partition`: in `manage.py faults` the
             struck worker, cut off for 2.5 sessions, wrote over what the next holder had written. `.fencing_token`
             is the node's czxid (the ensemble's own transaction number): it grows over all locks and restarts. The
             sequence number in the node's name does not serve: it starts anew when the parent node is removed.
Costs        4 round trips to acquire (is the parent there, create, list, one read for the number; 2 more to wait: a
             watch, and list again), 1 delete to release. Create and delete are writes through the ensemble. A session
             with heartbeats for each process.
Waiting      The wait time is kept while the ensemble answers. One that is silent is told as LockUnavailable at the end
             of the wait time, but for each request no sooner than GRACE (1 s; so 0.5 s become 1 s): a slow answer,
             or a first connection, is not yet a silent ensemble, and who waits 0 s would never get in. No later than
             CONNECT (5 s) after a request, and so without a wait time.
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

LONGEST_SESSION = 2_147_483  # seconds: it is sent as milliseconds in 32 bits


class ZooKeeperLock(Lock):
    """kazoo's Lock, with the node's czxid as fencing number."""

    slug = "zookeeper"
    title = "ZooKeeper: ephemeral sequential node (kazoo)"
    source = 'C2, E1: ZooKeeper; "Recipes: Locks", kazoo (F6)'
    guarantees = "mutual exclusion while the holder's session lives, in order of arrival"
    breaks_when = "the holder is paused or cut off past its session's time-out and goes on writing"
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
        }
    )

    def __init__(self, name: str, *, zookeeper: str, lease: float = 10.0) -> None:
        """`zookeeper`: hosts, as kazoo takes them; `lease`: seconds after which a silent session expires. The ensemble
        may make it another: usually it grants 2 to 20 of its ticks, so 4 to 40 s."""
        super().__init__(name)
        milliseconds(lease, longest=LONGEST_SESSION)
        self.hosts, self.lease = zookeeper, lease
        self._lock: Any = None
        self._client: Any = None
        self._session = self._process = 0  # that made the node

    def acquire(self, timeout: float | None = None) -> bool:
        """Raises LockUnavailable when the ensemble cannot be asked."""
        if not self.hosts:
            raise LockUnavailable(f"{self.name}: no ZOOKEEPER_HOSTS says where an ensemble is")
        deadline = ends_at(timeout)
        try:
            self._client = client_of(self.hosts, self.lease, deadline)
            lock: Any = KazooLock(Asking(self._client, deadline), self.path)
            lock.wake_event = Alarm(deadline)
            self._queue(lock, timeout)
        except KazooLockTimeout:
            return False
        except (KazooException, KazooTimeoutError) as error:
            raise LockUnavailable(f"{self.name}: ZooKeeper cannot be asked ({error!r})") from error
        return True

    def _queue(self, lock: Any, timeout: float | None) -> None:
        try:
            if not lock.acquire(timeout=timeout):  # its time was over while a reply was being lost
                raise KazooLockTimeout("not granted in time")
            stat = lock.client.exists(f"{self.path}/{lock.node}")
            if stat is None:
                raise LockUnavailable(f"{self.name}: the session ended while the lock was being taken")
            lock.client.deadline = None
            # the client may have its next session already
            self._session, self._process = stat.ephemeralOwner, os.getpid()
            self._lock, self.fencing_token = lock, stat.czxid
        except Exception:
            self._withdraw(lock)  # kazoo has tried to, once
            raise
        except BaseException:
            self._leave(lock)  # interrupted: its place in the queue would stand, and everyone behind it wait
            raise

    def _leave(self, lock: Any) -> None:
        """Delete the lock's node, known by its prefix: the reply with its name may be what the interrupt has cut off.
        A session's requests are answered in order, so a create under way is seen. An ensemble that does not answer
        within a session's time removes the node itself."""
        with suppress(KazooException, KazooTimeoutError):
            for node in self._client.get_children_async(self.path).get(timeout=self.lease):
                if node.startswith(lock.prefix):
                    self._client.delete_async(f"{self.path}/{node}").get(timeout=self.lease)

    def _withdraw(self, lock: Any) -> None:
        """The same as soon as the ensemble can be asked, however often the connection is lost before; without waiting
        for it. Requests wait in the client while it connects again; with the session the node goes by itself."""
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
        """Raises LockNotHeld without a holding of this process, LockLost when the node was gone before."""
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
            self._withdraw(lock)  # the session is the whole process's, and may live on
            raise LockUnavailable(
                f"{self.name}: ZooKeeper cannot be asked now; the node goes when it can, or with the session"
            ) from error
        except BaseException:
            self._leave(lock)
            raise

    def seen(self, number: int) -> None:
        """A store has seen `number`. Nothing to do: transaction numbers of an ensemble only grow. After an ensemble
        that was set up anew the store refuses everyone until its own number is reset by hand."""

    @property
    def path(self) -> str:
        """One of its own for each name; ZooKeeper knows no node "." or ".."."""
        node = quote(self.name, safe=":@=+")
        return f"/locks/{node if node.strip('.') else node.replace('.', '%2E')}"

    @property
    def held(self) -> bool:
        """False too when this process's client knows that it is cut off or has a new session, and in a forked child,
        which has no client."""
        if self._lock is None or self._process != os.getpid() or not self._client.connected:
            return False
        return bool(self._client.client_id[0] == self._session)
