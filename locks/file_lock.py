"""file-lock: an operating system lock (flock) on a file, one file for each name.

    host 1, A: flock /tmp/…/lock → taken      host 2, C: flock /tmp/…/lock → taken: another disk, another file
    host 1, B: flock … waits
    A: read 100, write 110
                                              C: read 100, write 120           A's 10 are gone

Guarantees   mutual exclusion between the processes of one host. A crashed holder's lock is freed by the kernel
             at once: no lease, so no overrun and no renewal. A paused holder keeps its lock.
Breaks when  there is a second host or container with a disk of its own; on NFS it depends on server and mount.
             A child that was forked inside the section keeps the lock until it too has closed the file.
Costs        no round trip: some 10 µs, and a look each `poll` while waiting.
Source       portalocker (flock on POSIX, LockFileEx on Windows).
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import ClassVar

import portalocker

from locks.base import NO_FENCING, NO_LEASE, NO_RENEWER, Lock
from locks.errors import LockNotHeld
from locks.hazards import ALL, Hazard
from locks.in_process import ASKS_NO_SERVER
from locks.timing import poll_until


class FileLock(Lock):
    """flock by name, in one directory of this host."""

    slug = "file-lock"
    title = "flock on a file for each name"
    source = "portalocker"
    guarantees = "mutual exclusion between the processes of one host; a crash frees it at once"
    breaks_when = "there is a second host"
    round_trips = "0"
    #: on one host; between hosts it excludes nobody, and no hazard is needed for that
    withstands = ALL - {Hazard.REPLICA_LAG, Hazard.DEADLOCK}
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
        self._file = portalocker.Lock(str(self.path), mode="a", fail_when_locked=True, timeout=0)

    def acquire(self, timeout: float | None = None) -> bool:
        return poll_until(self._attempt, self.poll, timeout)

    def _attempt(self) -> bool:
        if self._file.fh is not None:
            return False  # this object has it: portalocker would hand out the open file once more
        try:
            self._file.acquire()
        except portalocker.AlreadyLocked:
            return False
        return True

    def release(self) -> None:
        """Raises LockNotHeld without a holding."""
        if self._file.fh is None:
            raise LockNotHeld(f"{self.name}: release without holding it")
        self._file.release()

    @property
    def held(self) -> bool:
        return self._file.fh is not None
