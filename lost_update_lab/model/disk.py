"""What is on a disk that workers share, in a form that is the same whatever the kernel's numbers are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

#: the name of the disk among the servers
FILES = "files"
#: a thread: the number of its worker, and its number there
Owner = tuple[int, int]
#: which file it is; None: the one with that name, or one without a second name
Identity = tuple[int, int] | int | None
#: of a file; True: a folder; a text: where a link leads; None: nothing is there
Contents = bytes | str | bool | None


class Open(NamedTuple):
    """A descriptor. `gone`: which file it is, if the path no longer leads to it; `left`: what that file contains."""

    owner: Owner
    path: str
    gone: Identity
    left: bytes | None
    locks: tuple[str, ...]


class HeldOnDisk(NamedTuple):
    """`paths`: what is there, and which file it is if it has several names. `opened_files`: the open descriptors."""

    paths: tuple[tuple[str, Contents, Identity], ...] = ()
    opened_files: tuple[Open, ...] = ()

    def contents(self) -> bytes:
        return repr(tuple(self)).encode() if self.paths or self.opened_files else b""

    def opened(self, worker: int) -> bool:
        """May this worker read, write or close a file at any time?"""
        return any(each.owner[0] == worker for each in self.opened_files)

    def holds(self, owners: Collection[Owner]) -> bool:
        return any(each.locks and each.owner in owners for each in self.opened_files)

    def without(self, owners: Collection[Owner]) -> HeldOnDisk:
        """The same when these processes are dead."""
        return described(self.paths, [each for each in self.opened_files if each.owner not in owners])


def described(paths: Sequence[tuple[str, Contents, Identity]], opened_files: Sequence[Open]) -> HeldOnDisk:
    """Files are numbered in the order in which they are named here: which number the kernel gave them is chance."""
    numbers: dict[Identity, int] = {}

    def number(file: Identity) -> int | None:
        return None if file is None else numbers.setdefault(file, len(numbers) + 1)

    there = tuple((path, held, number(file)) for path, held, file in paths if held is not None)
    in_order = sorted(opened_files, key=lambda each: (each.owner, each.path, each.locks, each.left or b""))
    return HeldOnDisk(there, tuple(each._replace(gone=number(each.gone)) for each in in_order))
