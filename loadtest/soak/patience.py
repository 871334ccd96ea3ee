"""The soak's own queries to a database that is being killed: repeated until it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.db import InterfaceError, OperationalError, connections
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

T = TypeVar("T")
PATIENCE = 60.0  # seconds


def patiently(ask: Callable[[], T]) -> T:
    """Return the result of `ask`, with a new connection after each failure. `ask` may be executed twice."""
    for attempt in Retrying(
        retry=retry_if_exception_type((OperationalError, InterfaceError)),
        stop=stop_after_delay(PATIENCE),
        wait=wait_fixed(0.1),
        before_sleep=lambda _: connections.close_all(),
        reraise=True,
    ):
        with attempt:
            return ask()
    raise AssertionError("tenacity raises before this")
