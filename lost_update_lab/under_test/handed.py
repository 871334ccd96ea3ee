"""The clients that a setup, or an invariant, asks for by names of its parameters, as a worker does: `sql`, `redis`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial, wraps
from typing import Any

import psycopg
import redis

from lost_update_lab.under_test import mariadb
from lost_update_lab.under_test.scenario import Invariant, Operation
from lost_update_lab.under_test.servers import Servers


@contextmanager
def handed(setup: Callable[..., Any], servers: Servers) -> Iterator[Callable[[], Any]]:
    """The setup with its clients, which are closed then. `sql` is in autocommit."""
    try:
        wants = Operation(setup).wants
    except TypeError:  # it misses something else: calling it says so
        wants = ()
    with _clients(wants, servers) as clients:
        yield partial(setup, **clients)


def with_clients(invariants: Sequence[Invariant], servers: Servers) -> tuple[Invariant, ...]:
    """The same invariants, each with the clients that it asks for: its own, which are closed when it has answered."""
    return tuple(replace(each, holds=_asking(each, servers)) if each.wants else each for each in invariants)


def _asking(invariant: Invariant, servers: Servers) -> Callable[..., object]:
    @wraps(invariant.holds)  # it is still seen which results it takes
    def holds(*results: object) -> object:
        with _clients(invariant.wants, servers) as clients:
            return Operation(invariant.holds, results).called_with(clients)

    return holds


@contextmanager
def _clients(names: Iterable[str], servers: Servers) -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(_client(name, servers)) for name in names}


def _client(name: str, servers: Servers) -> Any:
    if name == "redis":
        return redis.Redis.from_url(servers.redis)
    if servers.on_mariadb:
        return closing(mariadb.connect(servers.database))
    return psycopg.connect(servers.database, autocommit=True)
