"""The clients that a setup, or an invariant, asks for by names of its parameters, as a worker does: `sql`, `redis`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import partial
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
    with ExitStack() as stack:
        yield partial(setup, **{name: stack.enter_context(_client(name, servers)) for name in wants})


def with_clients(invariants: Sequence[Invariant], servers: Servers) -> tuple[Invariant, ...]:
    """The same invariants, each with the clients that it asks for: its own, which are closed when it has answered."""
    return tuple(replace(each, holds=_Asking(each, servers)) if each.wants else each for each in invariants)


class _Asking:
    def __init__(self, invariant: Invariant, servers: Servers) -> None:
        self.invariant, self.servers = invariant, servers
        signature = inspect.signature(invariant.holds)
        self.parameters = list(signature.parameters.values())
        results = [each for each in self.parameters if each.name not in invariant.wants]
        self.__signature__ = signature.replace(parameters=results)  # what else it takes

    def __call__(self, *results: object) -> object:
        """A client may stand anywhere: `lambda sql, ann, bob: …`, `lambda *results, redis: …`"""
        left, places = list(results), list[object]()
        with ExitStack() as stack:
            clients = {
                name: stack.enter_context(_client(name, self.servers)) for name in self.invariant.wants
            }
            for each in self.parameters:
                if each.kind is each.VAR_POSITIONAL:
                    places += left
                elif each.name in clients and each.kind is not each.KEYWORD_ONLY:
                    places.append(clients.pop(each.name))
                elif each.name in self.invariant.takes:
                    places.append(left.pop(0))
            return self.invariant.holds(*places, **clients)


def _client(name: str, servers: Servers) -> Any:
    if name == "redis":
        return redis.Redis.from_url(servers.redis)
    if servers.on_mariadb:
        return closing(mariadb.connect(servers.database))
    return psycopg.connect(servers.database, autocommit=True)
