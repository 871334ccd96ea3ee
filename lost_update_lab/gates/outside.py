"""What a worker uses besides the servers: files, other programs, addresses that the explorer was not given.

Workers stand for machines of their own, so a file that two of them lock is not one file. Python reports each file that
is opened for writing, each lock on a file, and each address (sys.addaudithook). The first one ends the search. Workers
that are processes of one machine share its files (files.py).
"""

from __future__ import annotations

import fcntl
import os
import sys
from multiprocessing.process import BaseProcess
from typing import Any

from lost_update_lab.gates import files
from lost_update_lab.gates.patch import Patches
from lost_update_lab.model.errors import THE_SERVERS, Broken, Elsewhere
from lost_update_lab.model.workers import halt
from lost_update_lab.runs.place import Here, here

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_TRUNC
_CALLS = frozenset({"fcntl.flock", "fcntl.lockf"})
#: what changes a path → the places of those paths among its arguments
_PATHS = {
    **dict.fromkeys(("os.mkdir", "os.rmdir", "os.remove", "os.truncate"), (0,)),
    **dict.fromkeys(("os.link", "os.rename"), (0, 1)),
    "os.symlink": (1,),
}
#: … and those that only ask, or change what is not looked at
_ASKS = frozenset({"os.utime", "os.chmod"})
_LISTS = frozenset({"os.listdir", "os.scandir"})
_PROGRAMS = frozenset({"subprocess.Popen", "os.system", "os.posix_spawn", "os.fork"})
#: a datagram needs no connection
_CONNECTS, _DATAGRAMS = "socket.connect", ("socket.sendto", "socket.sendmsg")
_LOCKS = frozenset({fcntl.F_SETLK, fcntl.F_SETLKW})
_DATABASE = "sqlite3.connect"
#: all that is listened to. Python reports much more: each id(), each function that is inspected
_EVENTS = frozenset(
    {"open", "fcntl.fcntl", _DATABASE, _CONNECTS, *_DATAGRAMS, *_CALLS, *_PATHS, *_ASKS, *_LISTS, *_PROGRAMS}
)
#: no lock is made of devices. But what lies in memory is a file like any other
_DEVICES, _IN_MEMORY = ("/dev/", "/proc/"), "/dev/shm/"  # noqa: S108
IN_THIS_PROCESS = (
    "let the worker call the operation itself in this process (a server: by its framework's test client)"
)
RAISE = "let it raise an exception. The explorer lets a worker crash by itself: crashes=1"
_start, _exit = BaseProcess.start, os._exit
BY_FLOCK = (
    "lock it by fcntl.flock or fcntl.lockf; `manage.py compare` and `manage.py faults` run real processes"
)
MACHINES = "workers stand for machines of their own"


class _Hook:
    """An audit hook cannot be removed, so there is only one, and it sleeps outside of explorations."""

    added = active = False

    @classmethod
    def heard(cls, event: str, args: tuple[Any, ...], events: frozenset[str] = _EVENTS) -> None:
        """`events`: kept here, as a hook is called when the module has lost its names: at the interpreter's end."""
        if event not in events or not cls.active:
            return
        if (place := here()) and not place.run.ending and (found := _used(place, event, args)):
            place.run.error = found
            halt(place.task)


def _used(place: Here, event: str, args: tuple[Any, ...]) -> Broken | None:
    if files.files_of(place):
        return _on_this_machine(place, event, args)
    if event == "open" and isinstance(args[0], str | bytes | os.PathLike) and args[2] & _WRITES:
        return _file("opens", args[0], "for writing")
    if _locks_a_file(event, args):
        return Elsewhere(f"it locks a file ({event}): {MACHINES}, and a file is on one machine")
    if event in _PATHS and not (event == "os.mkdir" and os.path.exists(args[0])):
        return _file(f"changes ({event})", args[_PATHS[event][-1]])
    return _elsewhere(place, event, args)


def _locks_a_file(event: str, args: tuple[Any, ...]) -> bool:
    return event in _CALLS or (event == "fcntl.fcntl" and args[1] in _LOCKS)


def _elsewhere(place: Here, event: str, args: tuple[Any, ...]) -> Broken | None:
    if event == "os.fork":
        return Elsewhere("it forks another process, whose commands pass no gate", IN_THIS_PROCESS)
    if event in _PROGRAMS:
        return Elsewhere(
            f"it starts a program ({event} {args[0]!s:.60}), which passes no gate", IN_THIS_PROCESS
        )
    if event == _DATABASE and os.fsdecode(args[0]) not in ("", ":memory:"):
        return _file("opens the database in", args[0])
    if event in _DATAGRAMS and (args[1] is None or _logs()):  # it has talked to that address before; a log
        return None
    if event in (_CONNECTS, *_DATAGRAMS) and (where := _address(args[1])) not in _known(place):
        return Elsewhere(f"it talks to {where}, and the explorer was given no server there", THE_SERVERS)
    return None


def _started(process: Any) -> None:
    """Whatever way it makes one, and before it looks after the children that it has."""
    _end_the_search(
        Elsewhere(
            "it starts another process by multiprocessing, whose commands pass no gate", IN_THIS_PROCESS
        )
    )
    _start(process)


def _exits(status: int) -> None:
    """It would end the explorer, with its status and without a word."""
    _end_the_search(
        Elsewhere("it ends its process by os._exit, and the explorer runs in this process", RAISE)
    )
    _exit(status)


def _end_the_search(found: Broken) -> None:
    """If a worker does this. Else nothing."""
    if (place := here()) and not place.run.ending:
        place.run.error = found
        halt(place.task)


def _on_this_machine(place: Here, event: str, args: tuple[Any, ...]) -> Broken | None:
    """The workers are processes of one machine, and share its files."""
    if _locks_a_file(event, args):
        return Elsewhere(f"it locks a file by {event}, which the explorer cannot follow", BY_FLOCK)
    if event in _LISTS:
        if files.is_known_folder(place, args[0]):
            files.step(place, f"{event} {args[0] or '.'}", reads=True)
        return None
    if event != "open" and event not in _PATHS and event not in _ASKS:
        return _elsewhere(place, event, args)
    paths = [args[at] for at in _PATHS.get(event, (0,))]
    writes = bool(args[2] & _WRITES) if event == "open" else event in _PATHS
    if all(isinstance(path, str | bytes | os.PathLike) for path in paths) and (
        writes or files.is_known(place, paths[0])
    ):
        names = [os.fsdecode(path) for path in paths]
        if not _is_never_a_lock(names[0]):
            text = " ".join([event, *map(os.path.basename, names)])
            files.step(place, text, *paths, reads=not writes)
    return None


def _is_never_a_lock(name: str) -> bool:
    device = name.startswith(_DEVICES) and not name.startswith(_IN_MEMORY)
    return device or "__pycache__" in name or ".pyc" in name or _logs()


def _file(verb: str, path: Any, what: str = "") -> Broken | None:
    name = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else str(path)
    if _is_never_a_lock(name):
        return None
    told = f"it {verb} the file {name} {what}".rstrip()
    return Elsewhere(f"{told}: {MACHINES}, and a file is on one machine")


def _logs() -> bool:
    frame = sys._getframe(1)
    while frame and frame.f_back:
        if frame.f_globals.get("__name__") == "logging":
            return True
        frame = frame.f_back
    return False


def _address(address: Any) -> str:
    if isinstance(address, tuple):
        return f"{address[0]}:{address[1]}"
    return os.fsdecode(address) if isinstance(address, bytes) else str(address)


def _known(place: Here) -> set[str]:
    found = set()
    for server in place.run.servers.values():
        found.add(str(getattr(server, "address", "")))
        info = getattr(getattr(server, "admin", None), "info", None)
        if info is not None and hasattr(info, "host"):  # PostgreSQL's, for clients that speak its protocol
            found |= {f"{info.host}:{info.port}", f"{info.host}/.s.PGSQL.{info.port}"}
    return found | {each.replace("localhost:", "127.0.0.1:") for each in found}


def install(patches: Patches) -> None:
    if not _Hook.added:
        sys.addaudithook(_Hook.heard)
        _Hook.added = True
    patches.method(_Hook, "active", True)
    patches.method(BaseProcess, "start", _started)
    patches.method(os, "_exit", _exits)
