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
_PATHS = frozenset({"os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.rename", "os.remove"})
_PROGRAMS = frozenset({"subprocess.Popen", "os.system", "os.posix_spawn", "os.fork"})
_LOCKS = frozenset({fcntl.F_SETLK, fcntl.F_SETLKW})
#: paths that no lock is made of: devices, and Python's own files of modules
_NEVER = ("/dev/", "/proc/")
IN_THIS_PROCESS = (
    "let the worker call the operation itself in this process (a server: by its framework's test client)"
)
_start = BaseProcess.start
MACHINES = "workers stand for machines of their own"


class _Hook:
    """An audit hook cannot be removed, so there is only one, and it sleeps outside of explorations."""

    added = active = False

    @classmethod
    def heard(cls, event: str, args: tuple[Any, ...]) -> None:
        place = here() if cls.active else None
        if place and not place.run.ending and (found := _used(place, event, args)):
            place.run.error = found
            halt(place.task)


def _used(place: Here, event: str, args: tuple[Any, ...]) -> Broken | None:
    if files.files_of(place) and (event in _PATHS or event == "open"):
        _on_this_machine(place, event, args)
        return None
    if event == "open" and isinstance(args[0], str | bytes | os.PathLike) and args[2] & _WRITES:
        return _file("opens", args[0], "for writing")
    if event in _CALLS or (event == "fcntl.fcntl" and args[1] in _LOCKS):
        return Elsewhere(f"it locks a file ({event}): {MACHINES}, and a file is on one machine")
    if event in _PATHS and not (event == "os.mkdir" and os.path.exists(args[0])):
        return _file(f"changes ({event})", args[0])
    if event == "os.fork":
        return Elsewhere("it forks another process, whose commands pass no gate", IN_THIS_PROCESS)
    if event in _PROGRAMS:
        return Elsewhere(
            f"it starts a program ({event} {args[0]!s:.60}), which passes no gate", IN_THIS_PROCESS
        )
    if event == "socket.connect" and (where := _address(args[1])) not in _known(place):
        return Elsewhere(f"it talks to {where}, and the explorer was given no server there", THE_SERVERS)
    return None


def _started(process: Any) -> None:
    """Whatever way it makes one, and before it looks after the children that it has."""
    if (place := here()) and not place.run.ending:
        told = "it starts another process by multiprocessing, whose commands pass no gate"
        place.run.error = Elsewhere(told, IN_THIS_PROCESS)
        halt(place.task)
    _start(process)


def _on_this_machine(place: Here, event: str, args: tuple[Any, ...]) -> None:
    """The workers are processes of one machine, and share its files."""
    path = args[0]
    writes = event != "open" or bool(args[2] & _WRITES)
    if isinstance(path, str | bytes | os.PathLike) and (writes or files.is_known(place, path)):
        name = os.fsdecode(path)
        if not name.startswith(_NEVER) and "__pycache__" not in name and ".pyc" not in name and not _logs():
            files.step(place, f"{event} {os.path.basename(name)}", path, reads=not writes)


def _file(verb: str, path: Any, what: str = "") -> Broken | None:
    name = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else str(path)
    if name.startswith(_NEVER) or "__pycache__" in name or ".pyc" in name or _logs():
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
