"""What a case demands, and how long it waits for something to become true."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


class Broken(AssertionError):
    """The lock broke the promise that the case tests."""


def demand(promise: object, told: str) -> None:
    if not promise:
        raise Broken(told)


def wait_until(true: Callable[[], Any], patience: float = 60.0) -> None:
    """Wait until `true` returns a true value. Raises TimeoutError if it does not in time."""
    deadline = time.monotonic() + patience
    late = False
    while not true():
        if late:  # ask once more after the deadline, because the whole machine may have stood still
            raise TimeoutError("it did not come true")
        time.sleep(0.002)
        late = time.monotonic() > deadline
