"""What a case demands, and how long it waits for what must come true."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


class Broken(AssertionError):
    """The lock broke the promise that the case is about."""


def demand(promise: object, told: str) -> None:
    if not promise:
        raise Broken(told)


def wait_until(true: Callable[[], Any], patience: float = 60.0) -> None:
    """Ask again and again. Raises TimeoutError when it does not come true."""
    deadline = time.monotonic() + patience
    late = False
    while not true():
        if late:  # it was asked once more after its time: before, the whole machine may have stood still
            raise TimeoutError("it did not come true")
        time.sleep(0.002)
        late = time.monotonic() > deadline
