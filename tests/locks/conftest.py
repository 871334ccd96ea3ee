"""Actors on the session's Valkey."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from .actor import Actor


@pytest.fixture
def actor(redis_url: str) -> Iterator[Callable[..., Actor]]:
    """`actor(name="x", lease=1)`: a process that obeys. Its server: the session's, or `url=…`."""
    with ExitStack() as actors:

        def start(name: str = "x", url: str = redis_url, **options: Any) -> Actor:
            started = Actor(url, name, **options)
            actors.callback(started.end)
            return started

        yield start
