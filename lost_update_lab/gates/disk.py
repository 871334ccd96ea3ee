"""The disk of one machine, if workers are its processes: the files that workers have touched, and the locks on them.

A lock on a file belongs to the descriptor that was opened (flock, or an OFD lock in place of a POSIX one). So two
threads of this process exclude each other as two processes do. Which descriptors are open, and what each has locked, is
asked of the kernel (/proc/self/fd, fdinfo) after each turn of a thread: what is new then is that thread's.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from lost_update_lab.model.commands import Op
from lost_update_lab.model.disk import FILES, HeldOnDisk, Open, Owner, described
from lost_update_lab.model.server_defaults import Plain
from lost_update_lab.model.workers import Task
from lost_update_lab.runs.place import beside
from lost_update_lab.servers.memoised_disk import MemoisedDisk

#: the real ones: workers see others
flock, control = fcntl.flock, fcntl.fcntl
_stat, _lstat, _fstat = os.stat, os.lstat, os.fstat
_RANGE = "hhqqi4x"
_KINDS = ((fcntl.LOCK_EX, fcntl.F_WRLCK), (fcntl.LOCK_SH, fcntl.F_RDLCK), (fcntl.LOCK_UN, fcntl.F_UNLCK))
_GONE = " (deleted)"
_DESCRIPTORS = "/proc/self/fd"

#: a file: its device, and its number there
File = tuple[int, int]


class Files(Plain):
    """One object for each search."""

    name, lags, learns = FILES, False, False
    loses_replies = False

    def __init__(self) -> None:
        self.changed, self.version = False, 0
        #: the paths that are known, and what was there before any worker touched it
        self.opening: dict[str, bytes | str | bool | None] = {}
        #: has a worker asked whether another process lives?
        self.processes = False
        self._real: set[str] = set()  # the same paths, as the kernel names them
        self._owners: dict[int, tuple[Owner, File]] = {}
        self._before: dict[int, File] = {}
        self._dead: set[Owner] = set()
        self._fresh = False  # nothing was done since the last look
        self._held, self._contents, self._given = HeldOnDisk(), b"", b""

    def knows(self, path: str, who: Owner) -> bool:
        """This thread is about to touch what is there. Returns whether that is new."""
        with beside():
            if path in self.opening:
                return False
            self.opening[path] = _there(path)
            folder, name = os.path.split(path)
            self._real |= {os.path.join(os.path.realpath(folder), name), os.path.realpath(path)}
            for number, _ in self._descriptors():  # opened before any worker touched it
                if number not in self._owners:
                    self._before[number] = _file(number)
        self._look(who)
        self._given = self._contents
        return True

    def folders(self) -> set[str]:
        """Those in which known files are."""
        return {os.path.dirname(path) for path in self.opening}

    def begin(self, known: int = -1) -> None:
        for path, held in self.opening.items():
            _restore(path, held)
        for descriptor, (_, file) in self._owners.items():  # a process that is over has nothing open
            _shut(descriptor, file)
        self.changed, self.version = False, 0
        self._owners, self._dead = {}, set()
        self._look(None)
        self._given = self._contents

    def touched(self) -> None:
        self.version, self.changed = self.version + 1, True

    def before_step(self, op: Op) -> None:
        pass

    # -- turns ----------------------------------------------------------------------------------------------------

    def turned(self, who: Owner | None) -> None:
        """This thread's turn is over. Look once at what it has done."""
        if not self._fresh:
            self._look(who)

    def goes_on(self) -> None:
        """A thread has the turn, and may do anything to the files."""
        self._fresh, self._given = False, self._contents

    def done(self) -> HeldOnDisk | None:
        """What is there after this turn, if that was changed in it."""
        return self._held if self._contents != self._given else None

    def contents(self) -> bytes:
        """What was there when a thread's turn was over last. (After a run its threads are ended, and clean up.)"""
        return self._contents

    def opened(self, worker: int) -> bool:
        return self._held.opened(worker)

    def emptied(self, path: str) -> bool:
        """Is something else there than when this turn began: a new file, or an empty one?"""
        with beside():
            return _there(path) != next((held for known, held, _ in self._held.paths if known == path), None)

    def owns(self, worker: int, descriptor: int) -> bool:
        return descriptor in self._owners and self._owners[descriptor][0][0] == worker

    def becomes(self, held: HeldOnDisk) -> None:
        raise AssertionError("only real code changes real files")

    def _look(self, who: Owner | None) -> None:
        with beside():
            found, owners = [], {}
            for number, link in self._descriptors():
                file = _file(number)
                if self._before.get(number) == file:
                    continue
                known = self._owners.get(number)
                owner = known[0] if known and known[1] == file else who
                if owner is None:
                    continue
                owners[number] = owner, file
                if owner not in self._dead:
                    found.append(_open(number, link, file, owner))
            paths = [(path, _there(path), _links(path)) for path in sorted(self.opening)]
        self._owners, self._fresh = owners, True
        self._held = described(paths, found)
        self._contents = self._held.contents()

    def _descriptors(self) -> list[tuple[int, str]]:
        """The open descriptors of known files, with what the kernel says of each. No path leads to an open socket: to
        leave those out costs a third of asking where they lead, and a process of tests has dozens."""
        found = []
        for name in os.listdir(_DESCRIPTORS) if self._real else ():
            with suppress(OSError):
                if stat.S_ISSOCK(_fstat(int(name)).st_mode):
                    continue
                link = os.readlink(f"{_DESCRIPTORS}/{name}")
                if link.removesuffix(_GONE) in self._real:
                    found.append((int(name), link))
        return sorted(found)

    # -- what every server is asked -------------------------------------------------------------------------------

    def traces(self) -> bytes:
        return self.contents()

    def memoised(self) -> MemoisedDisk:
        return MemoisedDisk(self._held, self.processes)

    def freed(self, waiting: Sequence[Task]) -> list[Task]:
        return []

    def end_sessions(self, sessions: Sequence[Any], cut: bool = False) -> None:
        """The files of a process that dies are closed. (Its thread, which stands still, has them open.)"""
        for number, (owner, file) in self._owners.items():
            if owner in sessions:
                with beside():
                    _free(number, file)
        self._dead |= set(sessions)
        self._look(None)
        self.touched()

    def undisturbed(self, op: Op, own: Sequence[Any], others: Sequence[Any]) -> bool:
        return True  # what others have open, and have locked, is a part of what it holds

    def holds(self, sessions: Sequence[Any]) -> bool:
        return bool(sessions) and (self.processes or self._held.holds(sessions))

    def watch(self) -> None:
        pass

    def bypassed(self) -> str:
        return ""

    def close(self) -> None:
        self.begin()


def lock_range(descriptor: int, how: int, length: int = 0, start: int = 0, whence: int = 0) -> None:
    """What lockf does, but for the open descriptor and not for the whole process. Raises BlockingIOError."""
    kind = next(kind for flag, kind in _KINDS if how & flag)
    try:
        control(descriptor, fcntl.F_OFD_SETLK, struct.pack(_RANGE, kind, whence, start, length, 0))
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
        raise


def path_of(descriptor: int) -> str:
    """The path under which it was opened, as the kernel names it now."""
    return os.readlink(f"{_DESCRIPTORS}/{descriptor}").removesuffix(_GONE)


def _file(descriptor: int) -> File:
    there = _fstat(descriptor)
    return there.st_dev, there.st_ino


def _free(descriptor: int, file: File) -> None:
    with suppress(OSError):
        if _file(descriptor) == file:
            flock(descriptor, fcntl.LOCK_UN)
            lock_range(descriptor, fcntl.LOCK_UN)


def _shut(descriptor: int, file: File) -> None:
    """Whatever still refers to it closes it later: until then it leads nowhere."""
    with suppress(OSError):
        if _file(descriptor) == file:
            nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            os.dup2(nowhere, descriptor, inheritable=False)
            os.close(nowhere)


def _open(number: int, link: str, file: File, owner: Owner) -> Open:
    path = link.removesuffix(_GONE)
    with open(f"/proc/self/fdinfo/{number}") as info:
        words = [line.split() for line in info if line.startswith("lock:")]
    locks = tuple(sorted(f"{each[2]} {each[4]} {each[7]} {each[8]}" for each in words))
    try:
        there = _stat(path)
        gone = (there.st_dev, there.st_ino) != file
    except OSError:
        gone = True
    return Open(
        owner, path, file if gone else None, _read(f"{_DESCRIPTORS}/{number}") if gone else b"", locks
    )


def _there(path: str) -> bytes | str | bool | None:
    """The contents of the file; True: it is a folder; a text: where a link leads; None: nothing is there."""
    if os.path.islink(path):
        return os.readlink(path)
    return True if os.path.isdir(path) else _read(path)


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _links(path: str) -> File | None:
    """The file, if it has other names too."""
    with suppress(OSError):
        there = _lstat(path)
        return (there.st_dev, there.st_ino) if there.st_nlink > 1 and not os.path.isdir(path) else None
    return None


def _restore(path: str, held: bytes | str | bool | None) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        if held is True:
            return
        shutil.rmtree(path)
    elif held is True or not isinstance(held, bytes) or os.path.islink(path) or _links(path):
        with suppress(FileNotFoundError):
            os.remove(path)
    if held is True:
        os.makedirs(path, exist_ok=True)
    elif isinstance(held, str):
        os.symlink(held, path)
    elif isinstance(held, bytes) and _read(path) != held:
        with open(path, "wb") as file:
            file.write(held)
