"""zookeeper's first connection: the wait time is the caller's also before there is a session."""

from __future__ import annotations

import threading
import time

import pytest

from locks.errors import LockUnavailable
from locks.zookeeper import ZooKeeperLock
from locks.zookeeper_client import CONNECT, GRACE


def test_a_short_wait_times_out_when_no_server_answers() -> None:
    began = time.monotonic()
    ask(0.1)
    assert time.monotonic() - began < (GRACE + CONNECT) / 2


def test_a_second_thread_does_not_wait_for_the_first_one_s_patience() -> None:
    """One session for each process: a caller waits for another that connects, within its own time-out."""
    slow = threading.Thread(target=ask, args=(None,))
    slow.start()
    began = time.monotonic()
    ask(0.1)
    assert time.monotonic() - began < (GRACE + CONNECT) / 2
    slow.join()


def ask(timeout: float | None) -> None:
    with pytest.raises(LockUnavailable):
        ZooKeeperLock("nobody", zookeeper="127.0.0.1:1").acquire(timeout=timeout)
