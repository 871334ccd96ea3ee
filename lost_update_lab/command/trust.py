"""`lost-update-lab trust module:lock`: a bank of one account under a user's lock, every order, every fault."""

from __future__ import annotations

import argparse
import inspect
import os
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import psycopg
from redis import asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from lost_update_lab.command.explore import again, bounds_of, found
from lost_update_lab.model.bounds import Fault
from lost_update_lab.scenarios.race import NotKept, Race
from lost_update_lab.scenarios.result import Result
from lost_update_lab.servers.makes import MAKES
from lost_update_lab.under_test import mariadb
from lost_update_lab.under_test.of_django import project_of
from lost_update_lab.under_test.scenario import HANDED_IN, Mistake
from lost_update_lab.under_test.servers import Servers

OPENING, AMOUNTS = 100, {"Ann": 10, "Bob": 20, "Cid": 40}
#: its table, in whatever database it is given: no other table has this name
TABLE = "lost_update_lab_account"
READ = f"SELECT balance FROM {TABLE} WHERE id = 1"  # noqa: S608
WRITE = f"UPDATE {TABLE} SET balance = %s WHERE id = 1"  # noqa: S608
ENTERED = ("__enter__", "__exit__"), ("__aenter__", "__aexit__")
#: how the ids of its schedules begin: `trust:`; with three callers `trust3:`
_PREFIX = re.compile(r"trust(3?):")
#: PostgreSQL's error 42P01, MariaDB's 1146
_LACKS_A_TABLE = re.compile(r"UndefinedTable|\(1146, ")
NAMES_ITS_SETUP = (
    "A lock whose table must exist names what makes it: `{0}.setup = make_table`, a function that may ask for `sql` "
    "and `redis`"
)
#: seconds for the whole trial
BUDGET = 45.0


def trust(given: argparse.Namespace) -> list[Result]:
    return trusted(given.lock, given.workers, bounds_of(given))


def on_trial(of: str) -> tuple[str, int] | None:
    """The lock that this first part of an id names, and how many callers it had. None: it names no lock."""
    found = _PREFIX.match(of)
    return (of[found.end() :], int(found[1] or 2)) if found else None


def trusted(name: str, workers: int, bounds: Mapping[str, Any], replay: str = "") -> list[Result]:
    """The lock `module:name` on trial, or only one schedule of it. One that makes a table of its own is used once in
    the setup, and makes it there."""
    bounds = {"budget": BUDGET, "faults": 1, "kinds": frozenset(Fault), **bounds}
    try:
        results = _explored(name, workers, bounds, replay)
    except Mistake as mistake:
        if _LACKS_A_TABLE.search(str(mistake)) and not _setup_of(found(name)):
            raise Mistake(f"{mistake}. {NAMES_ITS_SETUP.format(name.rpartition(':')[2])}") from mistake
        if MAKES not in str(mistake):
            raise
        results = _explored(name, workers, bounds, replay, used=True)
    return [replace(result, notes=(*result.notes, *_hazards(result))) for result in results]


def _explored(
    name: str, workers: int, bounds: Mapping[str, Any], replay: str, used: bool = False
) -> list[Result]:
    prefix = "trust:" if workers == 2 else f"trust{workers}:"
    lock = found(name)
    project = project_of(None)  # its connections belong to Django, which has a state of its own for each
    race = Race(name, again=again(f"{prefix}{name}", bounds), replay=replay, **project, **bounds)
    bank(race, lock, workers, used)
    with suppress(NotKept):
        race.explore(control=False)
    return race.results


def bank(race: Race, lock: Any, workers: int = 2, used: bool = False) -> None:
    """Two or three deposits on one account, each read, computed and written under the lock. `used`: it has been used
    before. Raises Mistake."""
    wants = _wants(race.name, lock)
    race.overrides["waits_only"] = True
    race.setup(_open)
    if setup := _setup_of(lock):
        race.setup(setup)
    if used:
        race.setup(partial(_deposit(race.name, lock, wants), 0))
    for name, amount in list(AMOUNTS.items())[:workers]:
        race.worker(name, _deposit(race.name, lock, wants), amount)
    race.invariant(_kept, "money is lost: a deposit that was acknowledged is not on the account")


def _behind_partials(lock: Any) -> Any:
    while isinstance(lock, partial):
        lock = lock.func
    return lock


def _setup_of(lock: Any) -> Callable[..., Any] | None:
    """What the lock names as its setup. A method of a class, which takes `self`, is something else."""
    lock = _behind_partials(lock)
    if isinstance(lock, type) and not isinstance(inspect.getattr_static(lock, "setup", None), staticmethod):
        return None
    return getattr(lock, "setup", None)


def _open() -> None:
    with _connected() as sql:
        _ask(sql, f"CREATE TABLE {TABLE} (id int PRIMARY KEY, balance int NOT NULL)")
        _ask(sql, f"INSERT INTO {TABLE} VALUES (1, %s)", [OPENING])  # noqa: S608


def _deposit(name: str, lock: Any, wants: tuple[str, ...]) -> Any:
    def deposit(amount: int, sql: Any, redis: Any = None) -> Any:
        if _is_of_asyncio(lock):
            return _deposited(partial(_made, name, lock, wants), amount)
        held = _made(name, lock, wants, {"sql": sql, "redis": redis})
        if not hasattr(held, "__enter__"):
            return _deposited(lambda clients: held, amount)
        with _held(held):
            balance = _ask(sql, READ)[0]
            _ask(sql, WRITE, [balance + amount])
        return amount

    def with_redis(amount: int, sql: Any, redis: Any) -> Any:
        return deposit(amount, sql, redis)

    return with_redis if "redis" in wants else deposit


async def _deposited(make: Callable[[Mapping[str, Any]], Any], amount: int) -> int:
    """The same under a lock of asyncio. `make`: returns the lock, given clients of asyncio."""
    redis = asyncio.Redis.from_url(os.environ["REDIS_URL"], retry=Retry(NoBackoff(), 0))
    async with redis, await _connected_async() as sql, _held_async(make({"sql": sql, "redis": redis})):
        balance = (await _ask_async(sql, READ))[0]
        await _ask_async(sql, WRITE, [balance + amount])
    return amount


def _on_mariadb() -> bool:
    return Servers(os.environ["DATABASE_URL"], "").on_mariadb


def _connected() -> Any:
    """A connection in autocommit, of the client that the database has."""
    url = os.environ["DATABASE_URL"]
    return mariadb.connect(url) if _on_mariadb() else psycopg.connect(url, autocommit=True)


async def _connected_async() -> Any:
    url = os.environ["DATABASE_URL"]
    if _on_mariadb():
        return await mariadb.connect_async(url)
    return await psycopg.AsyncConnection.connect(url, autocommit=True)


def _ask(sql: Any, text: str, values: Sequence[object] = ()) -> Any:
    """The first row; None: the statement returns no rows."""
    with sql.cursor() as cursor:
        cursor.execute(text, values)
        return cursor.fetchone() if cursor.description else None


async def _ask_async(sql: Any, text: str, values: Sequence[object] = ()) -> Any:
    async with sql.cursor() as cursor:
        await cursor.execute(text, values)
        return await cursor.fetchone() if cursor.description else None


def _made(name: str, lock: Any, wants: Sequence[str], clients: Mapping[str, Any]) -> Any:
    """Raises Mistake if it makes no lock."""
    held = lock("account:1", **{each: clients[each] for each in wants})
    if not _can_be_held(held):
        if inspect.iscoroutine(held):
            held.close()
        raise Mistake(
            f"{name} is not a lock: it returned {held!r:.60}, which is neither a context manager nor one of asyncio"
        )
    return held


def _can_be_held(made: Any) -> bool:
    """By `with`, by `async with`, or by coroutines `acquire` and `release`."""
    if any(hasattr(made, enter) and hasattr(made, leave) for enter, leave in ENTERED):
        return True
    return all(inspect.iscoroutinefunction(getattr(made, each, None)) for each in ("acquire", "release"))


def _is_of_asyncio(lock: Any) -> bool:
    """Does its definition show it? Any other callable is given synchronous clients, whatever it returns."""
    lock = _behind_partials(lock)
    if isinstance(lock, type):
        asks = inspect.iscoroutinefunction(getattr(lock, "acquire", None))
        return (hasattr(lock, "__aenter__") or asks) and not hasattr(lock, "__enter__")
    return inspect.isasyncgenfunction(inspect.unwrap(lock))


@contextmanager
def _held(lock: Any) -> Iterator[None]:
    """A release that comes too late may raise an error; the deposit is acknowledged all the same."""
    lock.__enter__()
    try:
        yield
    except BaseException as error:
        if not lock.__exit__(type(error), error, error.__traceback__):
            raise
        return
    with suppress(Exception):  # whatever the library's error is called
        lock.__exit__(None, None, None)


@asynccontextmanager
async def _held_async(lock: Any) -> AsyncIterator[None]:
    if hasattr(lock, "__aenter__"):
        await lock.__aenter__()
    elif await lock.acquire() is False:
        raise TimeoutError("acquire() has answered False")
    leave = lock.__aexit__ if hasattr(lock, "__aexit__") else partial(_released, lock)
    try:
        yield
    except BaseException as error:
        if not await leave(type(error), error, error.__traceback__):
            raise
        return
    with suppress(Exception):
        await leave(None, None, None)


async def _released(lock: Any, *error: object) -> None:
    await lock.release()


def _kept(*results: object) -> bool:
    """The deposit of a worker that was cut off may be on the account or not."""
    with _connected() as sql:
        row = _ask(sql, f"SELECT balance FROM {TABLE}")  # noqa: S608
    possible = {OPENING}
    for amount, result in zip(AMOUNTS.values(), results, strict=False):
        done = {each + amount for each in possible}
        possible = done if result == amount else possible | done
    return bool(row and row[0] in possible)


def _wants(name: str, lock: Any) -> tuple[str, ...]:
    """The clients that it asks for, by keyword. Raises Mistake."""
    try:
        parameters = inspect.signature(lock).parameters.values()
    except (TypeError, ValueError):
        return ()
    others = [p for p in parameters if p.default is p.empty and p.name not in HANDED_IN]
    others = [p for p in others if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if len(others) != 1 or others[0].kind is inspect.Parameter.KEYWORD_ONLY:
        raise Mistake(
            f"{name} is not a lock: a lock takes a name and gives a context manager, and may ask for `redis` or `sql` "
            f"by keyword. This one takes {', '.join(p.name for p in parameters) or 'nothing'}"
        )
    return tuple(p.name for p in parameters if p.name in HANDED_IN and p.default is p.empty)


def _hazards(result: Result) -> Iterator[str]:
    if result.hazards:
        yield "each hazard by itself: " + ", ".join(f"{name} {word}" for name, word in result.hazards.items())
