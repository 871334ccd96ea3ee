"""Ends the servers of a process that has died, also by SIGKILL, when no clean-up of its own runs.

One small process beside each process that starts servers (multiprocessing's resource tracker works this way).
It reads orders from a pipe that only the owner holds open; the end of the pipe means that the owner is gone.
Then it stops what is still on its list, and removes the temporary paths.

A pipe, not PR_SET_PDEATHSIG: that signal comes when the *thread* that started the child ends, exists on Linux
only, and cannot remove paths. Left open: an owner killed in the millisecond between the start of a server
and its registration.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import psutil

GRACE = 5.0  # seconds between the polite signal and SIGKILL


class Reaper:
    """The owner's end of the pipe. Starts the process at the first order, and again in a forked child."""

    def __init__(self) -> None:
        self._pipe: int | None = None
        self._lock = threading.Lock()
        self._standing: dict[int | str, bytes] = {}
        # A forked child must not hold the pipe open: its parent's servers would then outlive the parent.
        os.register_at_fork(after_in_child=self._begin_again)

    def watch(self, pid: int, signum: int) -> None:
        """End the server `pid` with `signum` when this process is gone."""
        self._order("watch", pid, int(signum))

    def forget(self, pid: int) -> None:
        """Its end is over."""
        self._order("forget", pid)

    def remove(self, path: str | os.PathLike[str]) -> None:
        """Remove the file or folder when this process is gone."""
        self._order("remove", os.fspath(path))

    def keep(self, path: str | os.PathLike[str]) -> None:
        """It has been removed already."""
        self._order("keep", os.fspath(path))

    @contextlib.contextmanager
    def clears(self, path: str | os.PathLike[str]) -> Iterator[None]:
        """Remove the file or folder if this process is gone before the end of the block, where somebody else does."""
        self.remove(path)
        try:
            yield
        finally:
            self.keep(path)

    def _order(self, verb: str, subject: int | str, *details: int) -> None:
        line = (json.dumps([verb, subject, *details]) + "\n").encode()
        with self._lock:
            if verb in ("watch", "remove"):
                self._standing[subject] = line
            else:
                self._standing.pop(subject, None)
            if self._pipe is not None:
                try:
                    os.write(self._pipe, line)  # shorter than PIPE_BUF, so it arrives in one piece
                    return
                except BrokenPipeError:  # somebody killed it: a new one hears everything again
                    os.close(self._pipe)
            self._pipe = self._start()
            for standing in self._standing.values():
                os.write(self._pipe, standing)

    def _start(self) -> int:
        reading, writing = os.pipe()
        self._process = subprocess.Popen(
            # -P: the folder of this file, with its modules, is no place to import psutil's needs from
            [sys.executable, "-P", __file__],
            stdin=reading,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl-C in the terminal is not for it
        )
        os.close(reading)
        return writing

    def _begin_again(self) -> None:
        """In a forked child: an empty list, and a lock that no thread of the parent held at the fork."""
        if self._pipe is not None:
            os.close(self._pipe)
        self._pipe = None
        self._lock = threading.Lock()
        self._standing = {}


def main() -> None:
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    processes: dict[int, int] = {}
    paths: set[str] = set()
    for line in sys.stdin:
        verb, subject, *rest = json.loads(line)
        if verb == "watch":
            processes[subject] = rest[0]
        elif verb == "forget":
            processes.pop(subject, None)
        elif verb == "remove":
            paths.add(subject)
        else:
            paths.discard(subject)
    end(processes)
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.unlink(path)


def end(processes: dict[int, int]) -> None:
    """Each server with its signal, then whatever is left of the servers and their children with SIGKILL."""
    families = []
    for pid, signum in processes.items():
        with contextlib.suppress(psutil.NoSuchProcess):
            server = psutil.Process(pid)
            families += [server, *server.children(recursive=True)]
            server.send_signal(signum)
    for process in families:  # one that a test had paused would hear nothing
        with contextlib.suppress(psutil.NoSuchProcess):
            process.resume()
    deadline = time.monotonic() + GRACE
    while any(map(lives, families)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for process in filter(lives, families):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def lives(process: psutil.Process) -> bool:
    """A zombie does not: the process 1 of many a container never waits for the orphans that it inherits."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


if __name__ == "__main__":
    main()
else:
    REAPER = Reaper()
