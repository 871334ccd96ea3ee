"""kazoo's client as the `zookeeper` lock uses it: one session for each process, and no wait beyond a deadline."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError

CONNECT = 5.0  # seconds after which an ensemble that does not answer counts as unavailable
GRACE = 1.0  # seconds that each answer may take, however soon the wait time ends
_guard = threading.Lock()
#: by hosts, session time-out and process id
_clients: dict[tuple[str, float, int], Any] = {}


def _connected(hosts: str, session: float, patience: float) -> Any:
    client = KazooClient(hosts, timeout=session)
    try:
        client.start(timeout=patience)
    except KazooTimeoutError:
        client.close()
        raise
    return client


def client_of(hosts: str, session: float, deadline: float | None = None) -> Any:
    """Return this process's client: one session for all of its locks. Raises KazooTimeoutError after CONNECT, or at the
    `deadline` (on `time.monotonic()`'s clock, but no sooner than GRACE), also while another thread is connecting."""
    until, wanted = time.monotonic() + _patience(deadline), (hosts, session, os.getpid())
    if not _guard.acquire(timeout=until - time.monotonic()):
        raise KazooTimeoutError("another thread is still connecting")
    try:
        if wanted not in _clients:
            _clients[wanted] = _connected(hosts, session, max(0.0, until - time.monotonic()))
        return _clients[wanted]
    finally:
        _guard.release()


def _patience(deadline: float | None) -> float:
    """Seconds after which no answer means unavailable."""
    left = CONNECT if deadline is None else max(deadline - time.monotonic(), GRACE)
    return min(left, CONNECT)


class Asking:
    """kazoo's client for one lock. Its requests raise KazooTimeoutError if no answer comes. kazoo's own requests wait
    in the client until it has a connection again, for ever if need be."""

    def __init__(self, client: Any, deadline: float | None) -> None:
        self._client, self.deadline = client, deadline

    def __getattr__(self, name: str) -> Any:
        ask = getattr(self._client, f"{name}_async", None)
        if ask is None:
            return getattr(self._client, name)
        return lambda *args, **options: ask(*args, **options).get(timeout=_patience(self.deadline))


class Alarm(threading.Event):
    """Wakes a waiter. kazoo would restart the whole wait time whenever another waiter turns out to be ahead."""

    def __init__(self, deadline: float | None) -> None:
        super().__init__()
        self._deadline = deadline

    def wait(self, timeout: float | None = None) -> bool:
        return super().wait(None if self._deadline is None else max(0.0, self._deadline - time.monotonic()))
