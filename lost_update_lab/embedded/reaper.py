"""Ends the servers of a process that has died, even by SIGKILL, which leaves no time to clean up.

Each process that starts servers has one small reaper process beside it, as multiprocessing has its resource tracker.
The reaper reads orders from a pipe that only its owner holds open. When the pipe ends, the owner is gone: the reaper
then stops the servers on its list and removes the temporary paths.

Why a pipe and not PR_SET_PDEATHSIG: that signal comes when the *thread* that started the child ends, it exists on Linux
only, and it removes no paths. One gap is left: an owner that is killed in the millisecond between the start of a server
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
    """The owner's end of the pipe. The first order starts the process; so does the first one in a forked child."""

    def __init__(self) -> None:
        self._pipe: int | None = None
        self._lock = threading.Lock()
        self._standing: dict[int | str, bytes] = {}
        # A forked child must not hold the pipe open, or its parent's servers would outlive the parent.
        os.register_at_fork(after_in_child=self._begin_again)

    def watch(self, pid: int, signum: int) -> None:
        """When this process is gone, end the server `pid` with `signum`."""
        self._order("watch", pid, int(signum))

    def forget(self, pid: int) -> None:
        """The server `pid` has ended."""
        self._order("forget", pid)

    def remove(self, path: str | os.PathLike[str]) -> None:
        """When this process is gone, remove the file or folder."""
        self._order("remove", os.fspath(path))

    def keep(self, path: str | os.PathLike[str]) -> None:
        """The path has been removed."""
        self._order("keep", os.fspath(path))

    @contextlib.contextmanager
    def clears(self, path: str | os.PathLike[str]) -> Iterator[None]:
        """Remove the file or folder if this process dies inside the block. After the block that is up to others."""
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
                    os.write(self._pipe, line)  # shorter than PIPE_BUF, so it arrives whole
                    return
                except BrokenPipeError:  # the reaper was killed: a new one gets all orders again
                    os.close(self._pipe)
            self._pipe = self._start()
            for standing in self._standing.values():
                os.write(self._pipe, standing)

    def _start(self) -> int:
        reading, writing = os.pipe()
        self._process = subprocess.Popen(
            # -P: the modules beside this file must not shadow what psutil imports
            [sys.executable, "-P", __file__],
            stdin=reading,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl-C in the terminal does not reach it
        )
        os.close(reading)
        return writing

    def _begin_again(self) -> None:
        """Forget the parent's list and its lock, which a thread of the parent may hold. Called in a forked child."""
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
    """Send each server its signal. Then SIGKILL the servers and children that are left."""
    families = []
    for pid, signum in processes.items():
        with contextlib.suppress(psutil.NoSuchProcess):
            server = psutil.Process(pid)
            families += [server, *server.children(recursive=True)]
            server.send_signal(signum)
    for process in families:  # a process that a test has paused does not react
        with contextlib.suppress(psutil.NoSuchProcess):
            process.resume()
    deadline = time.monotonic() + GRACE
    while any(map(lives, families)) and time.monotonic() < deadline:
        time.sleep(0.02)
    for process in filter(lives, families):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def lives(process: psutil.Process) -> bool:
    """Return whether the process lives. A zombie does not: in many containers process 1 never reaps its orphans."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


if __name__ == "__main__":
    main()
else:
    REAPER = Reaper()
