"""Is it a lock at all? Call and enter it once, in a separate process, before any server starts.

    lock("a name", redis=…) → 42                       no lock: 42 is no context manager
    lock("a name", redis=…).__enter__() → KeyError     no lock: it fails before it has asked any server
    lock("a name", redis=…).__enter__() → no server    may be one: the trial decides

That process reaches no server. A lock that tries to reach one is not judged here.
"""

from __future__ import annotations

import inspect
import multiprocessing
import os
import sys
import traceback
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psycopg
from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ledger.strategies import Settings
from locks import LockFactory, build

#: what a lock may ask for by keyword (ledger/resources.py)
OFFERED = ("redis", "redis_nodes", "cache", "sql", "zookeeper")
NOWHERE = "/nonexistent/no-server"
AS_ASYNC = "Write it as an `@asynccontextmanager`, or without `async`: it returns an object with `__aenter__`"
#: seconds: a lock that still waits then has asked a server, which is enough
WITHIN = 3.0


def complaint(factory: LockFactory) -> str:
    """Return why this is no lock, in a sentence; "": it may be one."""
    if lacks := _not_offered(factory):
        names = " and ".join(f"`{name}`" for name in lacks)
        offered = ", ".join(OFFERED)
        return (
            f"asks for {names}, which the lab does not offer: a lock gets its name, and any of {offered} by keyword. "
            "Give every other parameter a default (a length of the lease is set from outside as `lease`, in seconds)"
        )
    context = multiprocessing.get_context("fork")  # all modules are imported already
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_try, args=(theirs, factory), daemon=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about threads, which the child does not need
        child.start()
    theirs.close()
    try:
        return str(ours.recv()) if ours.poll(WITHIN) else ""
    except EOFError:  # it ended its process
        return "ends the process that enters it"
    finally:
        child.kill()
        child.join()
        ours.close()


def _not_offered(factory: LockFactory) -> list[str]:
    try:
        first, *others = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):  # written in C, or without parameters: calling it will show
        return []
    named = {first.KEYWORD_ONLY, first.POSITIONAL_OR_KEYWORD}
    needed = [p.name for p in others if p.kind in named and p.default is p.empty]
    return [name for name in needed if name not in (*OFFERED, *Settings.__dataclass_fields__)]


def _try(pipe: Connection, factory: LockFactory) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    contacts = _out_of_reach()
    try:
        found = _what_is_wrong(factory, contacts)
    except BaseException as error:  # noqa: BLE001  (a third-party lock may raise anything)
        found = "" if contacts else f"raises at once: {type(error).__name__}: {error}{_where(error)}"
    pipe.send(found)
    os._exit(0)


def _what_is_wrong(factory: LockFactory, contacts: list[str]) -> str:
    client = Redis(unix_socket_path=NOWHERE, retry=Retry(NoBackoff(), 0))
    offered = {"redis": client, "redis_nodes": [client], "sql": "default", "zookeeper": "127.0.0.1:1"}
    from django.core.cache import caches

    lock: Any = build(factory, "a-name", **offered, cache=caches["default"])
    if not (hasattr(lock, "__enter__") and hasattr(lock, "__exit__")):
        if contacts:
            return ""
        if inspect.iscoroutine(lock):
            lock.close()
            return f"is not a lock: calling it gives a coroutine, not a lock. {AS_ASYNC}"
        return f"is not a lock: it returned {lock!r:.60}, which is not a context manager (no __enter__ and __exit__)"
    lock.__enter__()
    lock.__exit__(None, None, None)
    return ""


def _out_of_reach() -> list[str]:
    """Make every server unreachable from this process. Return the list to which attempts are added."""
    contacts: list[str] = []

    def connect(*args: Any, **keywords: Any) -> Any:
        contacts.append("database")
        raise OperationalError("no server can be reached here")

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event in ("socket.connect", "socket.getaddrinfo"):
            contacts.append(event)
            raise ConnectionRefusedError("no server can be reached here")

    BaseDatabaseWrapper.ensure_connection = BaseDatabaseWrapper.connect = connect  # type: ignore[method-assign]
    BaseDatabaseWrapper.cursor = connect  # type: ignore[method-assign]
    psycopg.Connection.connect = psycopg.connect = connect  # type: ignore[method-assign]
    sys.addaudithook(hook)
    return contacts


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if each.filename != __file__]
    return f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
