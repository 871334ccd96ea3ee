"""The journal: one file per process, one JSON line per event, so the history survives the death of a client.

It follows Jepsen: `invoke` before the request is sent, then `ok`, `fail` or `info`. An operation without a second line
(its process was killed, its user was stopped) has an unknown outcome until the end of the history.

    {"event": "invoke", "key": "k1", "at": 1.25, "worker": "host:12:3", "legs": [["A0001", 5]]}
    {"event": "ok", "key": "k1", "at": 1.31, "retries": 0}

It uses only the standard library and the pure types of reconcile, because the swarm writes it without Django.
"""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ledger.reconcile import ClientOutcome

SUFFIX = ".history.jsonl"


class Journal:
    """The writer: one file for the threads of this process. Each event is one `write`, so a SIGKILL tears no line.

    On a full disk an event is written whole or not at all, and OSError is raised. A client that cannot write its
    `invoke` sends no request. Without a second line, an operation's outcome is unknown.
    """

    def __init__(self, folder: Path | str) -> None:
        Path(folder).mkdir(parents=True, exist_ok=True)
        self.path = Path(folder) / f"{os.uname().nodename}-{os.getpid()}-{time.time_ns()}{SUFFIX}"
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._lock = threading.Lock()

    def invoke(
        self, key: str, legs: Iterable[tuple[str, int]], worker: str, look: str | None = None
    ) -> float:
        """Record that a request is about to be sent. Returns the recorded time, in seconds since the epoch. `look`:
        what is read, for an operation that changes nothing."""
        at = time.time()
        event: dict[str, Any] = {
            "event": "invoke",
            "key": key,
            "at": at,
            "worker": worker,
            "legs": list(legs),
        }
        if look is not None:
            event["look"] = look
        self._write(event)
        return at

    def complete(
        self,
        key: str,
        outcome: ClientOutcome,
        *,
        retries: int = 0,
        busy: bool = False,
        error: str = "",
        seen: int | None = None,
    ) -> float:
        """Record the answer, or that none will come. Returns the recorded time. `busy`: it failed because a lock or a
        server was unavailable, not because the business refused it. `seen`: the number that a look found."""
        at = time.time()
        event: dict[str, Any] = {"event": outcome.value, "key": key, "at": at}
        if retries:
            event["retries"] = retries
        if busy:
            event["busy"] = True
        if error:
            event["error"] = error[:500]
        if seen is not None:
            event["seen"] = seen
        self._write(event)
        return at

    def close(self) -> None:
        os.close(self._file)

    def _write(self, event: dict[str, Any]) -> None:
        line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            written = os.write(self._file, line)
            if written < len(line):  # the next event would be appended to the fragment
                os.ftruncate(self._file, os.fstat(self._file).st_size - written)
        if written < len(line):
            raise OSError(errno.ENOSPC, "no space for an event of the history", str(self.path))
