"""Everything private that the gates use of psycopg. Nothing else in this package names any of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import transaction
from psycopg._preparing import PrepareManager
from psycopg._queries import PostgresQuery
from psycopg.adapt import Transformer

from lost_update_lab.adapters.versions import Library, Names

#: psycopg's own, without a gate: `wait` drives every generator that talks to the server
wait: Any = psycopg.Connection.wait
connect: Any = psycopg.Connection.connect.__func__  # type: ignore[attr-defined]
close: Any = psycopg.Connection.close
connecting: Any = psycopg.BaseConnection._connect_gen.__func__  # type: ignore[attr-defined]
#: asks the server, past the connection, to cancel what is under way there
cancel: Any = psycopg.BaseConnection.cancel
cancel_safe: Any = psycopg.Connection.cancel_safe
cancel_safe_async: Any = psycopg.AsyncConnection.cancel_safe
#: sends its commands in pipeline mode
executemany: Any = psycopg.Cursor.executemany
executemany_async: Any = psycopg.AsyncCursor.executemany
#: sends its query, and does not wait for the reply
stream: Any = psycopg.Cursor.stream
stream_async: Any = psycopg.AsyncCursor.stream
#: … and the same of its asyncio form
wait_async: Any = psycopg.AsyncConnection.wait
close_async: Any = psycopg.AsyncConnection.close
connect_async: Any = psycopg.AsyncConnection.connect.__func__  # type: ignore[attr-defined]

#: names of its generators
EXECUTE, COMMIT, ROLLBACK, ENTER, EXIT = (
    "_execute_gen",
    "_commit_gen",
    "_rollback_gen",
    "_enter_gen",
    "_exit_gen",
)
#: … the one of a server-side cursor, which looks at the rows as they are now, and fetches them later
DECLARE = "_declare_gen"
#: … the one of the handshake, of both forms
CONNECTING = "_connect_gen"
#: … the one that waits for notifications
NOTIFIES = "notifies"
#: … those of two-phase commit
TWO_PHASES = ("_tpc_prepare_gen", "_tpc_finish_gen")
#: … the method that returns the text of BEGIN
BEGIN = "_get_tx_start_command"
#: … the name that is used here for a generator of the program's own
STATEMENT = "statement"
#: … the generators that send nothing
SILENT = ("_set_autocommit_gen", "_set_isolation_level_gen", "_set_read_only_gen", "_set_deferrable_gen")

_CONNECTION = (
    "wait",
    "connect",
    CONNECTING,
    "close",
    BEGIN,
    "_exec_command",
    "_pipeline",
    "_closed",
    "_num_transactions",
    "_should_cancel",
    "_prepared",
)
LIBRARY = Library(
    "psycopg",
    "psycopg",
    ("3.3",),
    [
        Names(psycopg.Connection, (*_CONNECTION, COMMIT, ROLLBACK, *TWO_PHASES, *SILENT)),
        Names(psycopg.Cursor, (EXECUTE, "_pgconn", "_query", "_query_cls", "_results", "_rowcount")),
        Names(psycopg.Cursor, ("_select_current_result",)),
        Names(psycopg.ServerCursor, (DECLARE,)),
        Names(psycopg.Cursor._execute_gen, ("self", "query", "params", "prepare", "binary")),
        Names(transaction.Transaction, (ENTER, EXIT, "_outer_transaction")),
        Names(transaction.Transaction._enter_gen, ("self",)),
        Names(transaction.Transaction._exit_gen, ("self", "exc_type")),
        Names(PrepareManager, ("_counts", "prepare_threshold")),
        Names(PostgresQuery, ("convert", "query", "params", "types", "formats")),
    ],
)


def given_to(generator: Any) -> dict[str, Any]:
    """The arguments of a generator that has not begun, by name."""
    return dict(generator.gi_frame.f_locals) if generator.gi_frame else {}


def asked_again(generator: Any, given: Mapping[str, Any], query: str) -> tuple[Any, dict[str, Any]]:
    """The generator of a cursor that has not begun, with another text; and its arguments."""
    generator.close()
    keywords = {name: given.get(name) for name in ("params", "prepare", "binary")}
    anew = given["self"]._execute_gen(query, **keywords)
    return anew, given_to(anew)


#: what `as_if_it_failed` returns for a generator that raises an error then; and a command that fails
FAILED, FAILS = object(), "SELECT 1 / 0"


def as_if_it_failed(connection: Any, generator: Any, closed: Any) -> Any:
    """Run a generator that has not begun to where its command has failed. That of a cursor is asked to send something
    that fails. Every other one sends nothing, as its connection is shown a `closed` session meanwhile. Returns what it
    returns, or FAILED."""
    if generator.__name__ == EXECUTE:
        again, _ = asked_again(generator, {**given_to(generator), "params": None}, FAILS)
        with suppress(psycopg.Error):
            wait(connection, again)
        return FAILED
    if generator.__name__ not in (COMMIT, ROLLBACK, ENTER, EXIT):
        generator.close()
        return FAILED
    session, connection.pgconn = connection.pgconn, closed
    try:
        next(generator)
    except StopIteration as done:
        return done.value
    except psycopg.OperationalError:
        return FAILED
    finally:
        give_back(connection, session)
        generator.close()
    return FAILED


def kind_of(generator: Any, given: Mapping[str, Any]) -> str:
    """The kind of a generator, by the names above. If a generator of the program's own is given a `query` and its
    `params`, as psycopg's is, it executes one statement, after a BEGIN if one is needed: STATEMENT."""
    frame = generator.gi_frame
    foreign = frame is not None and not frame.f_globals["__name__"].startswith("psycopg")
    return STATEMENT if foreign and "query" in given and "params" in given else str(generator.__name__)


def may_cancel(connection: Any) -> bool:
    """Would a request to cancel be sent? Raises psycopg.Error."""
    return bool(connection._should_cancel())


def begin_command(connection: Any) -> bytes:
    """The text by which it begins a transaction by itself."""
    return bytes(connection._get_tx_start_command())


def command(connection: Any, text: bytes) -> Any:
    """The generator that sends this text."""
    return connection._exec_command(text)


def is_outermost(block: Any) -> bool:
    """When a `with connection.transaction()` block ends: is it a transaction (BEGIN and COMMIT), or a savepoint?"""
    return bool(block._outer_transaction)


def in_pipeline(connection: Any) -> bool:
    return bool(getattr(connection, "_pipeline", None))


def query_of(cursor: psycopg.Cursor[Any], given: Mapping[str, Any]) -> PostgresQuery:
    """The statement as the cursor sends it. (What the cursor keeps may be its statement before.)"""
    query = cursor._query_cls(Transformer.from_context(cursor))
    query.convert(given["query"], given.get("params"))
    return query


def results_of(cursor: Any) -> list[Any]:
    """What its last command came to, as libpq has it: a result for each statement. A FETCH of a server-side cursor, and
    what is no cursor of psycopg's own, have only the one in `pgresult`."""
    found, here = list(getattr(cursor, "_results", ())), getattr(cursor, "pgresult", None)
    return [here] if here and all(each is not here for each in found) else found


def give_results(cursor: Any, results: list[Any], returning: bool) -> None:
    """As after executemany(): the results one by one, or only the number of rows of all of them."""
    cursor._results[:] = results if returning else []
    if returning and results:
        cursor._select_current_result(0)
    elif not returning:
        cursor.pgresult, cursor._rowcount = None, sum(each.command_tuples or 0 for each in results)


def belongs_to(connection: Any, pool: Any) -> None:
    """As psycopg_pool notes it: Django gives a connection back to the pool that it names. None: to no pool."""
    connection._pool = pool


def belongs(connection: Any) -> bool:
    """Does it go back to a pool when it is closed?"""
    return bool(getattr(getattr(connection, "_pool", None), "close_returns", False))


def session_of(cursor: Any) -> Any:
    """The session over which a cursor sends: that of its connection when the cursor was made."""
    return cursor._pgconn


def sends_over(cursor: Any, session: Any) -> None:
    cursor._pgconn = session


def prepares_nothing(connection: Any) -> None:
    """Until its attributes are put back, it neither prepares a statement, nor uses one that is."""
    connection._prepared = PrepareManager()
    connection._prepared.prepare_threshold = None


def is_shut(connection: Any) -> bool:
    return bool(connection._closed)


def shut(connection: Any, closed: Any) -> None:
    """It is closed. Another connection has its session, and it has a `closed` one."""
    connection.pgconn, connection._closed = closed, True


def give_back(connection: Any, pgconn: Any) -> None:
    """Give the connection its session back, after it was shown a closed one."""
    connection.pgconn, connection._closed = pgconn, False


def forget_counts(connection: Any) -> None:
    """Reset the count of open `with connection.transaction()` blocks: a block that was cut off is still counted. And
    how often it has executed each text, which it prepares in the end: one of several statements counts if it was cut
    off, and cannot be prepared."""
    connection._num_transactions = 0
    connection._prepared._counts.clear()
