"""The gates of files, where workers are processes of one machine. A call is a step if it changes a file, or asks for a
file that another worker may have changed."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from typing import Any

from lost_update_lab.gates.disk import NAME, Files, flock, lock_range, locked
from lost_update_lab.gates.patch import Patches
from lost_update_lab.model.commands import Op
from lost_update_lab.model.effects import NOBODY
from lost_update_lab.runs.place import Here, beside, here
from lost_update_lab.schedule import pending

_stat, _lstat, _lockf = os.stat, os.lstat, fcntl.lockf
#: seconds between two looks of a thread that waits in the kernel; any change wakes it earlier
LOOKS_EVERY = 1.0


def files_of(place: Here) -> Files | None:
    found = place.run.servers.get(NAME)
    return found if isinstance(found, Files) else None


def step(place: Here, text: str, path: Any, reads: bool = False) -> None:
    """Stand before this call. Its outcome follows from the files that exist, so that counts as told."""
    files = files_of(place)
    assert files is not None
    where = os.path.abspath(os.fsdecode(path)) if isinstance(path, str | bytes | os.PathLike) else str(path)
    files.knows(where)
    _stands(place, files, op := Op(NAME, text, text.encode(), reads=reads))
    place.task.history.add(op.identity, files.contents())
    pending.tell(place.run, place.task, op, "")
    if not reads:
        files.touched()


def is_known(place: Here, path: Any) -> bool:
    files = files_of(place)
    known = files is not None and isinstance(path, str | bytes | os.PathLike)
    return known and files is not None and os.path.abspath(os.fsdecode(path)) in files.opening


def _stands(place: Here, files: Files, op: Op) -> None:
    if place.run.recorder:
        place.run.recorder.opaque("files")
    place.run.live(place.task, pending.standing(place.run, place.task, op))


def _locks(name: str, real: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    def lock(file: Any, how: int, *rest: int) -> Any:
        place = here()
        files = files_of(place) if place else None
        if place is None or files is None:
            return real(file, how, *rest)
        descriptor = file if isinstance(file, int) else file.fileno()
        if place.run.ending and how & fcntl.LOCK_UN:  # a worker that is halted leaves nothing locked
            return ours(descriptor, how, *rest)
        while True:
            taken = _tries(
                place,
                files,
                f"{name} {descriptor} {how}",
                lambda: ours(descriptor, how | fcntl.LOCK_NB, *rest),
            )
            if taken:
                place.task.worker.sessions.setdefault(NAME, {})[locked(descriptor)] = place.task
                return None
            if how & fcntl.LOCK_NB:
                raise BlockingIOError(11, "Resource temporarily unavailable")
            place.run.wait(place.task, NOBODY, LOOKS_EVERY, f"waits in {name}")

    return lock


def _tries(place: Here, files: Files, text: str, call: Callable[[], Any]) -> bool:
    _stands(place, files, op := Op(NAME, text, text.encode()))
    try:
        with beside():
            call()
        taken = True
    except BlockingIOError:
        taken = False
    files.touched()
    place.task.history.add(op.identity, b"taken" if taken else b"busy")
    pending.tell(place.run, place.task, op, "taken" if taken else "locked by another")
    return taken


def _asks(real: Callable[..., Any]) -> Callable[..., Any]:
    def ask(path: Any, *args: Any, **keywords: Any) -> Any:
        place = here()
        if place and not place.run.ending and is_known(place, path):
            step(place, f"{real.__name__} {os.path.basename(os.fsdecode(path))}", path, reads=True)
        return real(path, *args, **keywords)

    return ask


def install(patches: Patches) -> None:
    patches.everywhere(flock, _locks("flock", flock, flock))
    patches.everywhere(_lockf, _locks("lockf", _lockf, lock_range))
    patches.everywhere(_stat, _asks(_stat))
    patches.everywhere(_lstat, _asks(_lstat))
