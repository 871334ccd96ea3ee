"""A database for each turn, so that each turn meets the same tables, and none the rows of those before it.

    once          CREATE DATABASE; the ledger's migrations
    each turn     CREATE DATABASE … TEMPLATE; this process goes there; the turn; back; DROP DATABASE

An entry is never deleted: in one database, whoever had the last turn would write to the largest table. What a turn
wrote goes with its database, and so does the memory that its files were kept in: the next turn is given the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from secrets import token_hex

from django.core.management import call_command
from django.db import DatabaseError, ProgrammingError, connection, connections
from psycopg.errors import InsufficientPrivilege
from psycopg.sql import SQL, Identifier

#: what `fresh_databases` gives: the block of a turn
Turn = Callable[[], AbstractContextManager[None]]
NOT_ALLOWED = (
    "Each turn met the rows of those before it: this role may not create databases (ALTER ROLE … CREATEDB)."
)


@contextmanager
def fresh_databases(noted: Callable[[str], None]) -> Iterator[Turn]:
    """Give what makes a database for a turn, beside the one that is used now. `noted` hears of it where the role may
    not: the turns are then in the one that is used now. None of them is left at the end."""
    template = f"lab_bench_{token_hex(4)}"
    try:
        _execute("CREATE DATABASE {}", template)
    except ProgrammingError as error:
        if not isinstance(error.__cause__, InsufficientPrivilege):
            raise
        noted(NOT_ALLOWED)
        yield nullcontext
        return
    try:
        with _used(template):
            call_command("migrate", database=connection.alias, verbosity=0)
        yield lambda: _copy_of(template)
    finally:
        _execute("DROP DATABASE {} WITH (FORCE)", template)


def settle() -> None:
    """Let the server write now what it writes every few minutes; else it does so in the middle of somebody's turn."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("CHECKPOINT")
    except DatabaseError:  # not everybody may, on a server that is not the bench's own
        return


@contextmanager
def _copy_of(template: str) -> Iterator[None]:
    name = f"{template}_turn"
    _execute("CREATE DATABASE {} TEMPLATE {}", name, template)
    try:
        with _used(name):
            settle()
            yield
    finally:
        _execute("DROP DATABASE {} WITH (FORCE)", name)


@contextmanager
def _used(name: str) -> Iterator[None]:
    """This process uses the database of this name, its threads too: they take their settings from the same place."""
    settings = connection.settings_dict
    before = settings["NAME"]
    connections.close_all()
    settings["NAME"] = name
    try:
        yield
    finally:
        connections.close_all()
        settings["NAME"] = before


def _execute(statement: str, *names: str) -> None:
    """By a connection of its own: there is no CREATE DATABASE within a transaction."""
    admin = connection.copy()
    try:
        with admin.cursor() as cursor:
            cursor.execute(SQL(statement).format(*map(Identifier, names)))
    finally:
        admin.close()
