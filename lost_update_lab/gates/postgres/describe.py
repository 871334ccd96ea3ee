"""What psycopg is about to send, as a step; what came back, exactly and for people; and how to send it again."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import generators
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from lost_update_lab.adapters import psycopg as driver
from lost_update_lab.model.commands import ENDS, Op
from lost_update_lab.model.errors import BY_A_LOOK, BY_ANOTHER_CLOCK, IN_ONE_PHASE, WITHOUT_COPY, Broken
from lost_update_lab.servers.postgres import clock_words
from lost_update_lab.servers.postgres.server import POSTGRES, PostgresServer
from lost_update_lab.servers.postgres.transactions import lasts, makes_temporary
from lost_update_lab.servers.pure_functions import calls_others
from lost_update_lab.telling.narrative import shortened
from lost_update_lab.telling.parameters import with_values

#: SET CONSTRAINTS … IMMEDIATE looks at rows, and may lock them
_LOCAL = re.compile(
    r"\s*(BEGIN|SAVEPOINT|RELEASE|SHOW|SET(?!\s+CONSTRAINTS\b.*\bIMMEDIATE))\b", re.IGNORECASE | re.DOTALL
)
#: a local command that begins no transaction
_DATELESS = re.compile(r"\s*(SAVEPOINT|RELEASE|SHOW|SET)\b", re.IGNORECASE)
_PLAIN_SELECT = re.compile(r"\s*SELECT\b(?!.*\b(?:FOR|INTO)\b)", re.IGNORECASE | re.DOTALL)
_SEVERAL = re.compile(r";\s*\S")
_WRITE = re.compile(r"\s*(INSERT|UPDATE|DELETE|COMMIT|ROLLBACK)\b", re.IGNORECASE)
_SKIPS = re.compile(r"\bSKIP\s+LOCKED\b", re.IGNORECASE)
_REPORTED = re.compile(
    r"^\s*(?:SET|RESET|DISCARD)\b(?!\s+(?:LOCAL\s+)?(?:\w+_timeout|CONSTRAINTS|TRANSACTION)\b)|set_config",
    re.IGNORECASE,
)
_TWO_PHASES = re.compile(r"\s*(?:PREPARE\s+TRANSACTION|(?:COMMIT|ROLLBACK)\s+PREPARED)\b", re.IGNORECASE)
_REFUSED = b"[[b'f']]"


Send = Callable[[PGconn], None]


NO_GATE = "no gate for psycopg's pipeline mode and COPY"
NO_NEWS = "no gate for psycopg's notifies(): when a notification comes is unknown to the explorer"
PREPARED = "a prepared transaction belongs to no session, and the explorer cannot end it"
NO_POSTGRES_CLOCK = "PostgreSQL's own clock decides there, which the explorer cannot move"


def beyond(kind: str, values: Mapping[str, Any], timed: bool) -> Broken | None:
    """The reason why the explorer cannot vouch for this command; None if it can. `kind`, `values`: of its generator.
    `timed`: the server's clock is virtual."""
    if "copy" in kind or isinstance(values.get("self"), psycopg.Pipeline | psycopg.Copy):
        return Broken(f"{NO_GATE} ({kind.strip('_')})", WITHOUT_COPY)
    if kind == driver.NOTIFIES:
        return Broken(NO_NEWS, BY_A_LOOK)
    text = text_of(values)
    if kind in driver.TWO_PHASES or _TWO_PHASES.match(text):
        return Broken(f"{PREPARED} ({shortened(text, 80) or kind.strip('_')})", IN_ONE_PHASE)
    found = clock_words.beyond(text)
    if not found and kind != driver.EXECUTE and by_the_clock(text, timed):
        found = (
            "its clock is asked"  # by a generator of the program's own, which cannot be given another text
        )
    return (
        Broken(f"{NO_POSTGRES_CLOCK} ({found} in {shortened(text, 80)})", BY_ANOTHER_CLOCK) if found else None
    )


def by_the_clock(text: str, timed: bool) -> bool:
    """Does the server's clock count in this command? Once it has decided something, each time that is written does."""
    return clock_words.asks(text) if timed else clock_words.decides(text)


def text_of(values: Mapping[str, Any]) -> str:
    query = values.get("query", "")
    if isinstance(query, psycopg.sql.Composable):
        return query.as_string()
    return query.decode() if isinstance(query, bytes) else str(query)


def describe(name: str, values: Mapping[str, Any], idle: bool, timed: bool = False) -> Op:
    if name == driver.COMMIT:
        return Op(POSTGRES, "COMMIT", b"COMMIT")
    if name == driver.ROLLBACK:
        return Op(POSTGRES, "ROLLBACK", b"ROLLBACK")
    if name in (driver.ENTER, driver.EXIT):  # `with connection.transaction()`
        return _transaction(values, idle, entering=name == driver.ENTER)
    text = text_of(values) if "query" in values else name.strip("_").removesuffix("_gen")
    params = values.get("params")
    shown = text if params is None else with_values(text, params, _shown)
    (local, reads), dates = _kind_of(text), not _DATELESS.match(text)
    timed = by_the_clock(text, timed)
    return Op(POSTGRES, shown, repr((text, params)).encode(), local, reads, timed, dates=local and dates)


@lru_cache(maxsize=1 << 12)
def _kind_of(text: str) -> tuple[bool, bool]:
    """Is the command local, and does it only read (Op)?"""
    text = clock_words.without_clock(text)
    several = bool(_SEVERAL.search(text))  # statements: the first word says nothing about the others
    local = bool(_LOCAL.match(text)) and not several
    return local, local or bool(_PLAIN_SELECT.match(text) and not calls_others(text) and not several)


def _transaction(values: Mapping[str, Any], idle: bool, entering: bool) -> Op:
    outer = idle if entering else driver.is_outermost(values["self"])
    failed = values.get("exc_type") is not None
    if entering:
        text = "BEGIN" if outer else "SAVEPOINT"
    elif failed:
        text = "ROLLBACK" if outer else "ROLLBACK TO"
    else:
        text = "COMMIT" if outer else "RELEASE"
    local = entering or (not outer and not failed)
    return Op(POSTGRES, text, text.encode(), local, reads=local, dates=entering and outer)


def _shown(value: Any) -> str:
    """A parameter, for people. psycopg sends some as bytes. A digest, or what is encrypted, is no text."""
    if not isinstance(value, bytes | bytearray | memoryview):
        return str(value)
    try:
        return bytes(value).decode()
    except UnicodeDecodeError:
        return f"\\x{bytes(value).hex()}"


def tells_of_itself(text: str) -> bool:
    """May the server report something else of the session from then on, by which clients read values?"""
    return bool(_REPORTED.search(text))


def calls(op: Op) -> bool:
    """May it call a function that takes a lock for the whole session?"""
    return not op.reads and not _WRITE.match(op.text)


def how_to_send(
    connection: psycopg.Connection[Any], op: Op, kind: str, given: Mapping[str, Any]
) -> Send | None:
    """How to send the same once more, with psycopg's own functions. `kind`: of its generator. `given`: the arguments of
    that generator; `self` is a cursor, a transaction or the connection. None: that is not known."""
    source = given.get("self")
    if driver.in_pipeline(connection):
        return None
    if kind == driver.EXECUTE and isinstance(source, psycopg.Cursor):
        return by_a_cursor(source, given)
    if kind == driver.STATEMENT:  # its text shows the types
        text, params = given["query"].encode(), given["params"]
        return lambda session: session.send_query_params(text, params)
    words = op.text if not getattr(source, "savepoint_name", "") else ""
    plain = {"BEGIN": driver.begin_command(connection), "COMMIT": b"COMMIT", "ROLLBACK": b"ROLLBACK"}
    return sending(plain[words]) if words in plain else None


def by_a_cursor(source: Any, given: Mapping[str, Any]) -> Send:
    """It is recorded, so it keeps no cursor: that would keep its connection, and the server's session."""
    query, form = driver.query_of(source, given), source.format
    text, params, formats, types = query.query, query.params, query.formats, query.types
    if isinstance(source, psycopg.ClientCursor | psycopg.AsyncClientCursor) or not (params or form):
        return lambda session: session.send_query(text)
    return lambda session: session.send_query_params(text, params, types, formats, form)


def under_way(
    connection: psycopg.Connection[Any], op: Op, kind: str, given: Mapping[str, Any]
) -> Send | None:
    """The same of a coroutine's command, which was sent."""
    if kind == driver.EXECUTE:
        return by_a_cursor(given["self"], given)
    return how_to_send(connection, op, kind, given)


def sending(words: bytes) -> Send:
    return lambda session: session.send_query(words)


def sent(session: PGconn, send: Send) -> Generator[Any, Any, list[PGresult]]:
    """Send it and wait for what comes back, as psycopg does. Raises psycopg.Error."""
    if session.status != ConnStatus.OK:
        raise psycopg.OperationalError("the connection is closed")
    send(session)
    return (yield from fetched(session))


def fetched(session: PGconn) -> Generator[Any, Any, list[PGresult]]:
    """Wait for what comes back of what was sent, statement by statement."""
    results: list[PGresult] = yield from generators.execute(session)
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result)
    return results


def changed(result: PGresult) -> int:
    """How many rows the statement has inserted, updated or deleted. 0: it is none of these."""
    word, _, count = (result.command_status or b"").partition(b" ")
    return int(count.split()[-1]) if word in (b"INSERT", b"UPDATE", b"DELETE", b"MERGE") else 0


def locks_rows(op: Op, results: Sequence[PGresult]) -> bool:
    """Has it locked a row, or something else that its transaction keeps? A function that says "false" has not."""
    if op.reads or op.text in ENDS:
        return False
    return any(_locks_rows(op, result) for result in results)


def _locks_rows(op: Op, result: PGresult) -> bool:
    if result.status == ExecStatus.TUPLES_OK:
        return result.ntuples > 0 and _reply_of(result)[0] != _REFUSED
    return not _WRITE.match(op.text) or changed(result) > 0


def is_refused(op: Op, reply: bytes, error: str) -> bool:
    """Did it not wait for what another transaction has locked?"""
    if error:
        return error == psycopg.errors.LockNotAvailable.__name__
    return not op.reads and (
        (reply == b"[]" and bool(_SKIPS.search(op.text)))
        or (reply == _REFUSED and "try_advisory" in op.text.lower())
    )


def replies_of(results: Sequence[PGresult]) -> tuple[bytes, str]:
    """What came back, exactly and for people; of several statements, one after the other."""
    replies = [_reply_of(result) for result in results]
    if len(replies) == 1:
        return replies[0]
    return b"\n".join(reply for reply, _ in replies), " | ".join(shown for _, shown in replies)


def _reply_of(result: PGresult) -> tuple[bytes, str]:
    if result.status != ExecStatus.TUPLES_OK:
        tag = (result.command_status or b"").decode()
        return tag.encode(), tag
    rows = [[result.get_value(r, c) for c in range(result.nfields)] for r in range(result.ntuples)]
    shown = "; ".join(
        ", ".join("NULL" if v is None else v.decode(errors="replace") for v in row) for row in rows
    )
    return repr(rows).encode(), shown or "no row"


def is_remembered(server: PostgresServer, connection: Any, op: Op) -> bool:
    """Does the session remember it? Once it has a temporary table, whatever it writes may be there."""
    keeps = lasts(op.text) or server.unseen.keeps(op.text)
    connection.explorer_stages = getattr(connection, "explorer_stages", False) or makes_temporary(op.text)
    return keeps or (connection.explorer_stages and not (op.reads or op.local or op.text in ENDS))
