"""The gates of files, where workers are processes of one machine. A call is a step if it changes a file, or asks for a
file that another worker may have changed.

Such a step is told all that the disk holds (model/disk.py), and so is a thread that has a file open, whenever it goes
on (schedule/pending.py): it may read the file, write it or close it at any time.
"""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from lost_update_lab.gates.disk import Files, flock, lock_range, path_of
from lost_update_lab.gates.patch import Patches
from lost_update_lab.memo.recording import Recording
from lost_update_lab.model.commands import Op
from lost_update_lab.model.disk import FILES
from lost_update_lab.model.effects import NOBODY, TOLD
from lost_update_lab.model.errors import AnotherFile, Elsewhere, Unknown
from lost_update_lab.model.workers import Standing, Task, halt
from lost_update_lab.runs.place import Here, beside, here
from lost_update_lab.schedule import pending
from lost_update_lab.schedule.pending import Seen
from lost_update_lab.schedule.world import World

_stat, _lstat, _fstat, _lockf, _kill = os.stat, os.lstat, os.fstat, fcntl.lockf, os.kill
_readlink, _access, _open = os.readlink, os.access, open
#: seconds between two looks of a thread that waits in the kernel; any change wakes it earlier
LOOKS_EVERY = 1.0
IN_REAL_PROCESSES = "`manage.py compare` and `manage.py faults` run it in real processes"
TIMES = "it asks when the file {name} was changed, and that goes by the real clock"
SHARES = (
    "it locks the file {name}, which was opened before the worker began: workers would share what is open"
)
#: of a stat: where times stand
_TIMES = (7, 8, 9)


@dataclass(slots=True)
class FileCall:
    """A call that concerns files. `process`: the worker whose life is asked for; None: a file."""

    text: str
    reads: bool
    process: int | None = None

    def same(self) -> Hashable:
        return self.text, self.reads

    def play(self, world: World, task: Task, recording: Recording) -> Standing:
        raise Unknown(task.worker.index)  # what it opens, only real code can use
        yield

    def stand(self, world: World, task: Task) -> None:
        pending.stand(world, task, Op(FILES, self.text, self.text.encode(), reads=self.reads))

    def turn(self, world: World, task: Task, recording: Recording) -> None:
        self.told(world, task)

    def told(self, world: World, task: Task) -> None:
        """Its outcome follows from what the disk holds, so that counts as told."""
        disk, op = world.servers[FILES], task.op
        assert op is not None
        lives = self.process is None or not world.workers[self.process].crashed
        task.history.add(op.identity, disk.contents(), b"" if lives else b"dead")
        who = task.worker.index, task.number
        task.worker.sessions.setdefault(FILES, {})[who] = task
        pending.hear(world, task, Seen(disk.contents(), "" if lives else "dead"))
        if not self.reads:
            disk.touched()


def files_of(place: Here) -> Files | None:
    found = place.run.servers.get(FILES)
    return found if isinstance(found, Files) else None


def step(place: Here, text: str, *paths: Any, reads: bool = False) -> None:
    """Stand before this call until its turn has come."""
    _take(place, text, paths, reads)
    _tell(place, "")


def _take(place: Here, text: str, paths: tuple[Any, ...], reads: bool, process: int | None = None) -> None:
    files, run = files_of(place), place.run
    assert files is not None
    for path in paths:
        if files.knows(_where(path), (place.task.worker.index, place.task.number)):
            _is_new(place)
    call = FileCall(text, reads, process)
    if run.recorder:
        run.recorder.recording.alone = True
    call = run.arrives(place.task, call)
    run.live(place.task, pending.standing(run, place.task, Op(FILES, text, text.encode(), reads=reads)))
    call.told(run, place.task)


def _tell(place: Here, reply: str) -> None:
    """What has come of it, for the people who read the schedule."""
    assert place.task.op is not None
    if place.run.recorder:
        place.run.recorder.effect(place.task, TOLD, reply)
    pending.tell(place.run, place.task, place.task.op, reply)


def _is_new(place: Here) -> None:
    """From now on looks at it are steps. In a search this was found too late: it begins again."""
    place.run.warming_up = True
    recording = place.run.recorder.recording if place.run.recorder else None
    if recording and recording.settled:
        place.run.error = AnotherFile()
        halt(place.task)
    if recording:
        recording.begin_again()


def _where(path: Any) -> str:
    return os.path.abspath(os.fsdecode(path))


def is_known(place: Here, path: Any) -> bool:
    files = files_of(place)
    return files is not None and isinstance(path, str | bytes | os.PathLike) and _where(path) in files.opening


def is_known_folder(place: Here, path: Any) -> bool:
    files = files_of(place)
    if files is None or not (path is None or isinstance(path, str | bytes | os.PathLike)):
        return False
    return _where(path or ".") in files.folders()


def _locks(name: str, real: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    def lock(file: Any, how: int, *rest: int) -> Any:
        place = here()
        if place is None or files_of(place) is None:
            return real(file, how, *rest)
        descriptor = file if isinstance(file, int) else file.fileno()
        if place.run.ending and how & fcntl.LOCK_UN:  # a worker that is halted leaves nothing locked
            return ours(descriptor, how, *rest)
        text = " ".join([name, os.path.basename(path_of(descriptor)), _words(how), *map(str, rest)])
        while not _tries(place, text, descriptor, lambda: ours(descriptor, how | fcntl.LOCK_NB, *rest)):
            if how & fcntl.LOCK_NB:
                raise BlockingIOError(11, "Resource temporarily unavailable")
            place.run.wait(place.task, NOBODY, LOOKS_EVERY, f"waits in {name}")
        return None

    return lock


def _words(how: int) -> str:
    return next(word for word in ("UN", "EX", "SH") if how & getattr(fcntl, f"LOCK_{word}"))


def _tries(place: Here, text: str, descriptor: int, call: Callable[[], Any]) -> bool:
    _take(place, text, (path_of(descriptor),), reads=False)
    files = files_of(place)
    if files and not files.owns(place.task.worker.index, descriptor):
        place.run.error = Elsewhere(
            SHARES.format(name=os.path.basename(path_of(descriptor))), IN_REAL_PROCESSES
        )
        halt(place.task)
    try:
        with beside():
            call()
        taken = True
    except BlockingIOError:
        taken = False
    _tell(place, "" if text.partition(" UN")[1] else "taken" if taken else "locked by another")
    return taken


class _Stat:
    """What stat tells, except times: those are real."""

    def __init__(self, told: os.stat_result, place: Here, name: str) -> None:
        self._told, self._place, self._name = told, place, name

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("st_mtime", "st_atime", "st_ctime")):
            self._by_time()
        return getattr(self._told, name)

    def __getitem__(self, at: Any) -> Any:
        if at in _TIMES:
            self._by_time()
        return self._told[at]

    def __len__(self) -> int:
        return len(self._told)

    def _by_time(self) -> None:
        if not self._place.run.ending:
            self._place.run.error = Elsewhere(TIMES.format(name=self._name), IN_REAL_PROCESSES)
            halt(self._place.task)


def _asks(real: Callable[..., Any], stats: bool = False) -> Callable[..., Any]:
    def ask(path: Any, *args: Any, **keywords: Any) -> Any:
        place = here()
        if place is None or place.run.ending or not is_known(place, path) or _imports(sys._getframe(1)):
            return real(path, *args, **keywords)
        name = os.path.basename(os.fsdecode(path))
        step(place, f"{real.__name__} {name}", path, reads=True)
        return _Stat(real(path, *args, **keywords), place, name) if stats else real(path, *args, **keywords)

    return ask


def _imports(frame: FrameType) -> bool:
    """Python looks for modules in the folders of its path, and for what is installed (the backport, too)."""
    return str(frame.f_globals.get("__name__")).startswith(("importlib.", "importlib_metadata"))


def _opens(real: Callable[..., Any]) -> Callable[..., Any]:
    """A file that was made, or emptied, is there before anything is written into it."""

    def opens(path: Any, *args: Any, **keywords: Any) -> Any:
        found = real(path, *args, **keywords)  # the audit hook stands before it (outside.py)
        place = here()
        files = files_of(place) if place and not place.run.ending else None
        if place and files and is_known(place, path) and files.emptied(_where(path)):
            step(place, f"has made {os.path.basename(_where(path))}", path, reads=True)
        return found

    return opens


def fstat(descriptor: int) -> Any:
    place = here()
    told = _fstat(descriptor)
    if place is None or place.run.ending or files_of(place) is None:
        return told
    path = path_of(descriptor)
    return _Stat(told, place, os.path.basename(path)) if is_known(place, path) else told


def kill(pid: int, number: int) -> None:
    """Asks a worker for its life, as locks that break those of the dead do."""
    place = here()
    worker = next((each for each in place.run.workers if each.pid == pid), None) if place else None
    if place is None or worker is None or number != 0 or files_of(place) is None:
        return _kill(pid, number)
    files = files_of(place)
    assert files is not None
    if not files.processes:  # from now on a crash may be noticed at any time
        files.processes = True
        _is_new(place)
    _take(place, f"kill {pid} 0", (), reads=True, process=worker.index)
    _tell(place, f"{worker.name} is dead" if worker.crashed else f"{worker.name} lives")
    if worker.crashed:
        raise ProcessLookupError(3, "No such process")
    return None


def install(patches: Patches) -> None:
    patches.everywhere(flock, _locks("flock", flock, flock))
    patches.everywhere(_lockf, _locks("lockf", _lockf, lock_range))
    patches.everywhere(_stat, _asks(_stat, stats=True))
    patches.everywhere(_lstat, _asks(_lstat, stats=True))
    patches.everywhere(_readlink, _asks(_readlink))
    patches.everywhere(_access, _asks(_access))
    patches.everywhere(_fstat, fstat)
    for opens in _open, os.open:
        patches.everywhere(opens, _opens(opens))
    patches.everywhere(_kill, kill)
