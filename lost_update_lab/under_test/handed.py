"""The clients that a setup asks for by the names of its parameters, as a worker does: `sql`, `redis`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import Any

import psycopg
import redis

from lost_update_lab.under_test import mariadb
from lost_update_lab.under_test.scenario import Operation
from lost_update_lab.under_test.servers import Servers


@contextmanager
def handed(setup: Callable[..., Any], servers: Servers) -> Iterator[Callable[[], Any]]:
    """The setup with its clients, which are closed then. `sql` is in autocommit."""
    try:
        wants = Operation(setup).wants
    except TypeError:  # it misses something else: calling it says so
        wants = ()
    with ExitStack() as stack:
        yield partial(setup, **{name: stack.enter_context(_client(name, servers)) for name in wants})


def _client(name: str, servers: Servers) -> Any:
    if name == "redis":
        return redis.Redis.from_url(servers.redis)
    if servers.on_mariadb:
        return closing(mariadb.connect(servers.database))
    return psycopg.connect(servers.database, autocommit=True)
