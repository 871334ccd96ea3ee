"""The process from which the fault matrix forks its workers: one thread, Django loaded, no connection.

    pool → zygote   ("fork",) and the worker's end of a pipe   ("reap", pid)
    zygote → pool   the worker's process id                    the worker's exit code

Each pool has one, with the environment of the moment at which it was started. multiprocessing's fork server does not
serve here: the whole process shares it, and its first user fixes what it has loaded and to which servers its children
connect. A plain fork does not either, because the judge has threads and open connections. The zygote ends with the
pool's end of the pipe, and its workers with it (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle, send_handle

from ledger.addresses import BASE_DIR
from loadtest.servers.children import import_path


class Zygote:
    """The pool's end of the pipe. Thread-safe."""

    def __init__(self, env: Mapping[str, str] | None = None) -> None:
        self._pipe, theirs = Pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "loadtest.faults.workers.zygote", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            cwd=BASE_DIR,
            env={**os.environ, **(env or {}), "PYTHONPATH": import_path()},
            start_new_session=True,  # Ctrl-C is for the judge
        )
        theirs.close()
        self._gate = threading.Lock()

    def fork(self) -> tuple[int, Connection]:
        """Return a new worker's process id and the pipe to it."""
        ours, theirs = Pipe()
        with self._gate:
            self._pipe.send(("fork", 0))
            send_handle(self._pipe, theirs.fileno(), self._process.pid)
            pid = self._pipe.recv()
        theirs.close()
        return pid, ours

    def reap(self, pid: int) -> int:
        """Wait for the end of a killed worker. Return its exit code."""

        with self._gate:
            self._pipe.send(("reap", pid))
            return int(self._pipe.recv())

    def close(self) -> None:
        self._pipe.close()
        self._process.wait(10)


def main(pipe: Connection) -> None:
    import loadtest.faults.workers.preload  # noqa: F401  (before the package of the worker: it sets Django up)
    from loadtest.faults.workers.worker import main as work

    gc.freeze()
    with suppress(EOFError, OSError):
        while True:
            what, pid = pipe.recv()
            if what == "reap":
                pipe.send(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
                continue
            theirs = Connection(recv_handle(pipe))
            if not (pid := os.fork()):
                pipe.close()
                work(theirs)
                os._exit(0)
            theirs.close()
            pipe.send(pid)


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])))
