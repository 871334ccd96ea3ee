"""`lost-update-lab trust module:lock`: a bank of one account under a user's lock, every order, every fault."""

from __future__ import annotations

import argparse
import inspect
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import psycopg

from lost_update_lab.command.explore import again, bounds_of, found
from lost_update_lab.model.bounds import Fault
from lost_update_lab.scenarios.race import NotKept, Race
from lost_update_lab.scenarios.result import Result
from lost_update_lab.subject.scenario import HANDED_IN, Mistake

OPENING, AMOUNTS = 100, {"Ann": 10, "Bob": 20}
#: its table, in whatever database it is given: no other table has this name
TABLE = "lost_update_lab_account"
#: how the ids of its schedules begin
PREFIX = "trust:"
#: seconds for the whole trial
BUDGET = 45.0


def trust(given: argparse.Namespace) -> list[Result]:
    return trusted(given.lock, bounds_of(given))


def trusted(name: str, bounds: Mapping[str, Any], replay: str = "") -> list[Result]:
    """The lock `module:name` on trial, or only one schedule of it."""
    lock = found(name)
    wants = _wants(name, lock)
    bounds = {"budget": BUDGET, "faults": 1, "kinds": frozenset(Fault), **bounds}
    race = Race(name, again=again(f"{PREFIX}{name}", bounds), replay=replay, **bounds)
    bank(race, lock, wants)
    with suppress(NotKept):
        race.explore(control=False)
    return [replace(result, notes=(*result.notes, *_hazards(result))) for result in race.results]


def bank(race: Race, lock: Any, wants: tuple[str, ...]) -> None:
    """Two deposits on one account, each read, computed and written under the lock."""
    race.setup(_open)
    for name, amount in AMOUNTS.items():
        race.worker(name, _deposit(lock, wants), amount)
    race.invariant(_kept, "money is lost: a deposit that was acknowledged is not on the account")


def _open() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute(f"CREATE TABLE {TABLE} (id int PRIMARY KEY, balance int NOT NULL)")
        connection.execute(f"INSERT INTO {TABLE} VALUES (1, %s)", [OPENING])  # noqa: S608


def _deposit(lock: Any, wants: tuple[str, ...]) -> Any:
    def deposit(amount: int, sql: Any, redis: Any) -> int:
        clients = {"sql": sql, "redis": redis}
        with _held(lock("account:1", **{name: clients[name] for name in wants})):
            balance = sql.execute(f"SELECT balance FROM {TABLE} WHERE id = 1").fetchone()[0]  # noqa: S608
            sql.execute(f"UPDATE {TABLE} SET balance = %s WHERE id = 1", [balance + amount])  # noqa: S608
        return amount

    return deposit


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


def _kept(ann: object, bob: object) -> bool:
    """The deposit of a worker that was cut off may be on the account or not."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        row = connection.execute(f"SELECT balance FROM {TABLE}").fetchone()  # noqa: S608
    possible = {OPENING}
    for amount, result in zip(AMOUNTS.values(), (ann, bob), strict=True):
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
            f"{name} is no lock: a lock takes a name and gives a context manager, and may ask for `redis` or `sql` by "
            f"keyword. This one takes {', '.join(p.name for p in parameters) or 'nothing'}"
        )
    return tuple(p.name for p in parameters if p.name in HANDED_IN and p.default is p.empty)


def _hazards(result: Result) -> Iterator[str]:
    for hazard, word in result.hazards.items():
        yield f"{hazard}: {word}"
