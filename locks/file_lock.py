"""file-lock: an operating system lock (flock) on a file, one file for each name.

    host 1, A: flock /tmp/…/lock → taken      host 2, C: flock /tmp/…/lock → taken: another disk, another file
    host 1, B: flock … waits
    A: read 100, write 110
                                              C: read 100, write 120           A's 10 are gone

Guarantees   mutual exclusion between the processes of one host. A crashed holder's lock is freed by the kernel
             at once: no lease, so no overrun and no renewal. A paused holder keeps its lock.
Breaks when  there is a second host or container with a disk of its own; on NFS it depends on server and mount.
             A child that was forked inside the section shares the open file, though not the holding: the
             holder's release frees it at once, the holder's death only when the child too is gone. Its file is
             deleted while it is held: the next one makes another. Cleaners of temporary files go by age, so each
             acquire makes it young; who holds it for days gives a `directory` that nobody cleans.
Costs        no round trip: some 10 µs, and a look each `poll` while waiting.
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
    #: on one host; between hosts it excludes nobody, and no hazard is needed for that
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
        temporary files); `poll`: seconds between two attempts."""
        super().__init__(name)
        self.directory = Path(directory or Path(tempfile.gettempdir()) / "lost-update-lab-locks")
        self.directory.mkdir(parents=True, exist_ok=True)
        self.path = self.directory / (hashlib.sha256(self.name.encode()).hexdigest()[:32] + ".lock")
        self.poll = poll
        self._holding: tuple[int, portalocker.Lock] | None = None  # process, and the open file

    def acquire(self, timeout: float | None = None) -> bool:
        """Raises LockUnavailable when the file cannot be opened, or its file system knows no locks."""
        opened: list[portalocker.Lock] = []
        try:
            return poll_until(lambda: self._attempt(opened), self.poll, timeout)
        except BaseException:  # interrupted: who does not know that it is locked will not release it
            for file in opened:
                if self._holding and self._holding[1] is file:
                    self._holding = None
                file.release()
            raise

    def _attempt(self, opened: list[portalocker.Lock]) -> bool:
        """`opened` becomes the file of this attempt. Each opens it anew: two that have it open exclude each other,
        threads of one object too."""
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
        """False: it was deleted before it was locked, and whoever comes next would open another one."""
        try:
            os.utime(self.path)
            return os.path.samestat(os.fstat(file.fileno()), os.stat(self.path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Raises LockNotHeld without a holding of this process."""
        holding = self._holding
        if holding is None or not self.held:
            raise LockNotHeld(f"{self.name}: release without holding it")
        self._holding = None
        holding[1].release()

    @property
    def held(self) -> bool:
        """A forked child has its parent's file open and holds nothing."""
        return self._holding is not None and self._holding[0] == os.getpid()
