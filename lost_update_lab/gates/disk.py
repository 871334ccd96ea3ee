"""The disk of one machine, if workers are its processes: the files that workers have touched, and the locks on them.

A lock on a file belongs to the descriptor that was opened (flock, or an OFD lock in place of a POSIX one). So two
threads of this process exclude each other as two processes do.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from lost_update_lab.model.commands import Op
from lost_update_lab.model.memoised_server import MemoisedServer
from lost_update_lab.model.server_defaults import Plain
from lost_update_lab.model.workers import Task
from lost_update_lab.runs.place import Active, beside

NAME = "files"
#: the real ones: workers see others
flock, control = fcntl.flock, fcntl.fcntl
_RANGE = "hhqqi4x"
_KINDS = ((fcntl.LOCK_EX, fcntl.F_WRLCK), (fcntl.LOCK_SH, fcntl.F_RDLCK), (fcntl.LOCK_UN, fcntl.F_UNLCK))


class Locked(NamedTuple):
    """A file that a worker has open, and has locked. `file`: its device, and its number there."""

    descriptor: int
    file: tuple[int, int]


class Untouched(MemoisedServer):
    """The disk in an in-memory run, in which no file is used: a run that uses one is executed."""

    name, loses_replies = NAME, False

    def end_sessions(self, sessions: Sequence[Any], cut: bool = False) -> None:
        pass

    def undisturbed(self, op: Op, own: Sequence[Any], others: Sequence[Any]) -> bool:
        return False

    def holds(self, sessions: Sequence[Any]) -> bool:
        return False


class Files(Plain):
    """One object for each search."""

    name, lags, learns = NAME, False, False
    loses_replies = False

    def __init__(self) -> None:
        self.changed, self.version = False, 0
        #: the paths that are known, and what was there before any worker touched it
        self.opening: dict[str, bytes | bool | None] = {}
        self._looked, self._contents = (-1, -1), b""

    def knows(self, path: str) -> None:
        """A worker is about to touch what is there."""
        with beside():
            if path not in self.opening:
                self.opening[path] = _held(path)

    def begin(self, known: int = -1) -> None:
        for path, held in self.opening.items():
            if os.path.isdir(path) and held is not True:
                shutil.rmtree(path)
            elif held is None:
                with suppress(FileNotFoundError):
                    os.remove(path)
            elif held is True:
                os.makedirs(path, exist_ok=True)
            elif isinstance(held, bytes):
                with open(path, "wb") as file:
                    file.write(held)
        self.changed, self.version, self._looked = False, 0, (-1, -1)

    def touched(self) -> None:
        self.version, self.changed = self.version + 1, True

    def before_step(self, op: Op) -> None:
        pass

    def contents(self) -> bytes:
        """Looked at once for each turn: only the thread whose turn it is changes anything."""
        turn = self.version, Active.run.news if Active.run else -1
        if self._looked != turn or not Active.run:
            with beside():
                found = [(path, _held(path), _locked(path)) for path in sorted(self.opening)]
            self._looked, self._contents = (
                turn,
                repr([each for each in found if each[1] is not None]).encode(),
            )
        return self._contents

    def traces(self) -> bytes:
        return self.contents()

    def memoised(self) -> MemoisedServer:
        return Untouched(self.contents(), {})

    def freed(self, waiting: Sequence[Task]) -> list[Task]:
        return []

    def end_sessions(self, sessions: Sequence[Any], cut: bool = False) -> None:
        """The files of a process that dies are closed. (Its thread, which stands still, has them open.)"""
        for each in sessions:
            with beside(), suppress(OSError):
                if _file(each.descriptor) == each.file:
                    flock(each.descriptor, fcntl.LOCK_UN)
                    lock_range(each.descriptor, fcntl.LOCK_UN)
        self.touched()

    def undisturbed(self, op: Op, own: Sequence[Any], others: Sequence[Any]) -> bool:
        return False

    def holds(self, sessions: Sequence[Any]) -> bool:
        return bool(sessions)

    def watch(self) -> None:
        pass

    def bypassed(self) -> str:
        return ""

    def close(self) -> None:
        self.begin()


def locked(descriptor: int) -> Locked:
    return Locked(descriptor, _file(descriptor))


def lock_range(descriptor: int, how: int, length: int = 0, start: int = 0, whence: int = 0) -> None:
    """What lockf does, but for the open descriptor and not for the whole process. Raises BlockingIOError."""
    kind = next(kind for flag, kind in _KINDS if how & flag)
    try:
        control(descriptor, fcntl.F_OFD_SETLK, struct.pack(_RANGE, kind, whence, start, length, 0))
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
        raise


def _file(descriptor: int) -> tuple[int, int]:
    there = os.fstat(descriptor)
    return there.st_dev, there.st_ino


def _held(path: str) -> bytes | bool | None:
    """The contents of the file; True: it is a folder; None: nothing is there."""
    if os.path.isdir(path):
        return True
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def _locked(path: str) -> str:
    """How it is locked, found by trying to lock it and releasing it again."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return ""
    try:
        return "".join(_tried(descriptor, lock) for lock in (flock, lock_range))
    finally:
        os.close(descriptor)


def _tried(descriptor: int, lock: Any) -> str:
    for how, word in ((fcntl.LOCK_EX, "-"), (fcntl.LOCK_SH, "s")):
        try:
            lock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        lock(descriptor, fcntl.LOCK_UN)
        return word
    return "x"
