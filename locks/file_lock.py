"""file-lock: an operating system lock (flock) on a file, one file for each name.

    host 1, A: flock /tmp/…/lock → taken      host 2, C: flock /tmp/…/lock → taken: another disk, another file
    host 1, B: flock … waits
    A: read 100, write 110
                                              C: read 100, write 120           A's 10 are gone

Guarantees   mutual exclusion between the processes of one host. The kernel frees a crashed holder's lock at once.
             There is no lease, so there is no overrun and no renewal. A paused holder keeps its lock.
Breaks when  there is a second host, or a container with its own disk. On NFS it depends on the server and the mount.
             A child that is forked inside the section shares the open file, although it does not hold the lock: a
             release by the holder frees it at once, but the holder's death frees it only once the child is gone
             too. If the file is deleted while it is locked, the next caller creates and locks another one. Programs
             that clean up temporary files go by age, so each acquire updates the file's times. A holder that keeps
             the lock for days needs a `directory` that is not cleaned up.

Costs        no round trip: about 10 µs, and one attempt every `poll` while waiting.
Source       portalocker (flock on POSIX, LockFileEx on Windows).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import IO, Any, ClassVar

import portalocker

from locks.base import NO_FENCING, NO_LEASE, NO_RENEWER, Lock
from locks.errors import LockNotHeld, LockUnavailable
from locks.hazards import BESIDE_THE_LOCK, Hazard
from locks.in_process import ASKS_NO_SERVER
from locks.timing import poll_until


class FileLock(Lock):
    """flock by name, in one directory of this host."""

    slug = "file-lock"
    within = "machine"
    title = "flock on a file for each name"
    source = "B1; portalocker (F6)"
    guarantees = "mutual exclusion between the processes of one host; a crash frees it at once"
    breaks_when = "there is a second host"
    round_trips = "0"
    #: on one host. Between hosts it excludes nobody, even without a hazard
    withstands = BESIDE_THE_LOCK | {
        Hazard.CONTENTION,
        Hazard.CRASH,
        Hazard.WORKER_CRASH,
        Hazard.PAUSE,
        Hazard.OVERRUN,
        Hazard.RENEWAL_DIES,
        Hazard.RENEWAL_LIVES,
        Hazard.FOREIGN_RELEASE,
        Hazard.WAITER_INTERRUPTED,
        Hazard.SERVER_RESTART,
        Hazard.FAILOVER,
        Hazard.PARTITION,
        Hazard.SPLIT_BRAIN,
        Hazard.LOST_REPLY,
        Hazard.CLOCK_JUMP,
        Hazard.STAMPEDE,
        Hazard.CONNECTIONS,
        Hazard.EVICTION,
    }
    fails: ClassVar[dict[str, str]] = {}
    not_applicable: ClassVar[dict[str, str]] = ASKS_NO_SERVER | NO_LEASE | NO_RENEWER | NO_FENCING

    def __init__(self, name: str, *, directory: str | Path | None = None, poll: float = 0.05) -> None:
        """`directory`: where the files are (default: `lost-update-lab-locks` in the system's directory for
        temporary files). `poll`: seconds between two attempts."""
        super().__init__(name)
        self.directory = Path(directory or Path(tempfile.gettempdir()) / "lost-update-lab-locks")
        self.directory.mkdir(parents=True, exist_ok=True)
        self.path = self.directory / (hashlib.sha256(self.name.encode()).hexdigest()[:32] + ".lock")
        self.poll = poll
        self._holding: tuple[int, portalocker.Lock] | None = None  # process, and the open file

    def acquire(self, timeout: float | None = None) -> bool:
        """Raises LockUnavailable if the file cannot be opened, or its file system has no locks."""
        opened: list[portalocker.Lock] = []
        try:
            return poll_until(lambda: self._attempt(opened), self.poll, timeout)
        except (
            BaseException
        ):  # interrupted: a caller that does not know that it holds the lock never releases
            for file in opened:
                if self._holding and self._holding[1] is file:
                    self._holding = None
                file.release()
            raise

    def _attempt(self, opened: list[portalocker.Lock]) -> bool:
        """`opened` becomes the file of this attempt. Each attempt opens the file again, because flock excludes by open
        file: that way, threads that share one object exclude each other too."""
        file = portalocker.Lock(str(self.path), mode="a", fail_when_locked=True, timeout=0)
        opened[:] = [file]
        try:
            stays = self._made_young(file.acquire())
        except portalocker.AlreadyLocked:
            return False
        except (portalocker.LockException, OSError) as error:
            file.release()
            raise LockUnavailable(f"{self.name}: {self.path} cannot be locked ({error})") from error
        if not stays:
            file.release()
            return self._attempt(opened)
        self._holding = os.getpid(), file
        return True

    def _made_young(self, file: IO[Any]) -> bool:
        """Update the file's times. False: it was deleted before it was locked, so others would open a new one."""
        try:
            os.utime(self.path)
            return os.path.samestat(os.fstat(file.fileno()), os.stat(self.path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Raises LockNotHeld if this process does not hold it."""
        holding = self._holding
        if holding is None or not self.held:
            raise LockNotHeld(f"{self.name}: release without holding it")
        self._holding = None
        holding[1].release()

    @property
    def held(self) -> bool:
        """False in a forked child: it inherits the open file, but does not hold the lock."""
        return self._holding is not None and self._holding[0] == os.getpid()
