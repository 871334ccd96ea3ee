"""A database for each turn, so every turn starts with the same tables, without the rows of earlier turns.

    once          CREATE DATABASE; the ledger's migrations
    each turn     CREATE DATABASE … TEMPLATE; this process goes there; the turn; back; DROP DATABASE

An entry is never deleted: in a single database, the last contender would write to the largest table. The rows of a turn
are dropped with its database, and so is their page cache, so every turn has the same conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from secrets import token_hex

from django.core.management import call_command
from django.db import DatabaseError, ProgrammingError, connection, connections
from psycopg.errors import InsufficientPrivilege
from psycopg.sql import SQL, Identifier

#: provided by `fresh_databases`: the block of a turn
Turn = Callable[[], AbstractContextManager[None]]
NOT_ALLOWED = (
    "Each turn found the rows of earlier turns: this role may not create databases (ALTER ROLE … CREATEDB)."
)


@contextmanager
def fresh_databases(noted: Callable[[str], None]) -> Iterator[Turn]:
    """Provide a function that creates a database for a turn, on the server in use. If the role may not create
    databases, `noted` is told so, and the turns use the current database. All created databases are dropped at the
    end."""
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
    """Make the server write its checkpoint now. Otherwise it would do so in the middle of some turn."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("CHECKPOINT")
    except DatabaseError:  # on another server, the role may lack the permission
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
    """Switch this process to the database of this name, including its threads, which share the settings."""
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
    """Execute on a connection of its own, because CREATE DATABASE cannot run in a transaction."""
    admin = connection.copy()
    try:
        with admin.cursor() as cursor:
            cursor.execute(SQL(statement).format(*map(Identifier, names)))
    finally:
        admin.close()
