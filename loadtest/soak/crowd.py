"""All client processes as one: started together, counted by the bytes that they write, ended together."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from math import inf
from typing import Any, Self

from ledger.addresses import BASE_DIR
from lost_update_lab.embedded.reaper import REAPER


class ClientDied(RuntimeError):
    """A client process failed, so its postings were made by the other clients, or not at all."""


class Crowd:
    """`orders`: one for each process (see client.py). A context manager that starts and ends the processes."""

    def __init__(self, orders: list[dict[str, Any]]) -> None:
        self.orders, self.done = orders, 0
        self.processes: list[subprocess.Popen[bytes]] = []
        self._pipes = selectors.DefaultSelector()

    def __enter__(self) -> Self:
        for order in self.orders:
            process = subprocess.Popen(
                [sys.executable, "-m", "loadtest.soak.client", json.dumps(order)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                cwd=BASE_DIR,
                start_new_session=True,
            )
            REAPER.watch(process.pid, signal.SIGKILL)
            self.processes.append(process)
            assert process.stdout
            self._pipes.register(process.stdout, selectors.EVENT_READ, process)
        return self

    def __exit__(self, *_: Any) -> None:
        for process in self.processes:
            with suppress(ProcessLookupError):
                process.kill()
            process.wait()
            REAPER.forget(process.pid)
        self._pipes.close()

    def stop(self) -> None:
        """Tell the clients to begin nothing more."""
        for process in self.processes:
            process.terminate()

    def wait_for(self, count: float, quiet: float, until: float = inf) -> bool:
        """Wait until `count` postings are completed, all clients have ended, or the monotonic clock reaches `until`.

        Returns False if none was completed for `quiet` seconds. Raises ClientDied if a client ended with a code other
        than 0.
        """
        last = time.monotonic()
        while self.done < count and self._pipes.get_map() and time.monotonic() < until:
            for key, _ in self._pipes.select(1.0):
                if said := os.read(key.fd, 65536):
                    self.done += len(said)
                    last = time.monotonic()
                else:
                    self._pipes.unregister(key.fileobj)
                    if code := key.data.wait():
                        raise ClientDied(f"client {key.data.pid} ended with code {code}")
            if time.monotonic() - last > quiet:
                return False
        return True
