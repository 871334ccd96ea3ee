"""A session of MariaDB as the explorer knows it: how it was made, what it holds, and how it is reset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from lost_update_lab.model.bounds import SECOND
from lost_update_lab.servers.mariadb.memoised import Status, Wait
from lost_update_lab.servers.mariadb.patience import (
    FOR_EVER,
    GIVES_UP_READING,
    LOOKS_FOR_ITS_CLIENT,
    NAMED_LOCK,
    ROWS,
    STATEMENT,
    named_patience,
    row_patience,
)

#: what was set in this session, and differs from the server's default
SETTINGS = """
SELECT variable_name, session_value, variable_type FROM information_schema.system_variables
WHERE variable_scope = 'SESSION' AND read_only = 'NO' AND session_value <> global_value
AND variable_name NOT IN ('TIMESTAMP', 'RAND_SEED1', 'RAND_SEED2', 'INSERT_ID', 'LAST_INSERT_ID', 'IDENTITY',
    'PSEUDO_THREAD_ID', 'PSEUDO_SLAVE_MODE', 'GTID_SEQ_NO', 'GTID_DOMAIN_ID', 'SERVER_ID', 'SQL_LOG_BIN')
"""
PATIENCE = "SELECT @@SESSION.innodb_lock_wait_timeout, @@SESSION.max_statement_time, @@SESSION.tx_isolation"
#: a session that stands idle is ended by the server's own clock
STAYS = (
    "SET SESSION idle_transaction_timeout = 0, SESSION idle_readonly_transaction_timeout = 0, "
    "SESSION idle_write_transaction_timeout = 0, SESSION wait_timeout = 28800"
)
_ENDS = """
SELECT LOWER(variable_name), session_value FROM information_schema.system_variables
WHERE (variable_name LIKE 'IDLE%TRANSACTION_TIMEOUT' AND session_value + 0 > 0)
OR (variable_name = 'WAIT_TIMEOUT' AND session_value + 0 < 600)
"""
#: s; waits longer than this never end, as far as a schedule is concerned
_LONGEST = 1_000_000


class Driver(Protocol):
    """How to talk to MariaDB past the gates (adapters/pymysql.py)."""

    def run(self, connection: Any, text: str) -> tuple[tuple[Any, ...], ...]: ...
    def number(self, connection: Any) -> int: ...
    def address(self, connection: Any) -> str: ...
    def close(self, connection: Any) -> None: ...
    def is_open(self, connection: Any) -> bool: ...
    def inside(self, connection: Any) -> bool: ...
    def commits_by_itself(self, connection: Any) -> bool: ...
    def wish_autocommit(self, connection: Any, on: bool) -> None: ...
    def has_answered(self, connection: Any, within_ms: int | None) -> bool: ...
    def hear_out(self, connection: Any) -> None: ...
    def begin_again(self, connection: Any) -> None: ...
    def give_back(self, connection: Any, kept: tuple[Any, ...]) -> None: ...
    def reads_for_ever(self, connection: Any) -> float | None: ...
    def hand_back(self, left: Any, connection: Any) -> Any: ...


class Patience(NamedTuple):
    """In s; None: for ever. `rows`: how long a command waits for a row (innodb_lock_wait_timeout). `statement`: how
    long it may take (max_statement_time)."""

    rows: float | None = None
    statement: float | None = None

    def wait(self, kind: str, text: str, usual: Patience) -> Wait:
        """How long this command may wait for "rows", or a "name"."""
        given = named_patience(text) if kind == NAMED_LOCK else row_patience(text)
        seconds = given if kind == NAMED_LOCK or given is not None else self.rows
        limit = kind
        if self.statement is not None and (seconds is None or self.statement < seconds):
            seconds, limit = self.statement, STATEMENT
        in_vain = seconds is not None and (given is not None or self != usual)
        return Wait(kind, seconds, limit, in_vain)


@dataclass(slots=True)
class MariadbSession:
    """`settings`: statements that make a new session like this one. `autocommit`: as it was when first seen."""

    settings: tuple[str, ...]
    autocommit: bool
    isolation: str
    #: how long a command waits, and takes, by default and now
    usual: Patience
    patience: Patience
    #: the limit by which the server would end it when it stands idle: its name and its seconds
    ends_by: tuple[str, str] | None = None
    who: Any = None
    #: the isolation level that its transactions have because the search says so; "": their own
    level: str = ""
    #: its last command was a transaction by itself, with a COMMIT after it
    alone: bool = False
    #: what its clock shows, in µs since the start of the schedule; None: the time of day
    told: int | None = None
    #: its command was sent outside of a transaction
    commits: bool = False
    #: a command was sent and its answer not read yet; `asks`: which command; `late`: what ended its wait
    busy: bool = False
    asks: str = ""
    late: str = ""
    #: what the answer to it depends on (None: it is not known), the command with its times, and what the tables held
    asked: bytes | None = None
    timed: Any = None
    found: bytes = b""
    #: how it came to hold what it holds beyond its transactions
    holds: bytes = b""
    #: names that its commands have asked for, as they are written, and whether it has the lock of one
    names: frozenset[str] = frozenset()
    keeps: bool = False
    #: its open transaction has locked rows
    locked: bool = False
    #: it may have locked whole tables
    tables: bool = False
    #: a setting was changed that outlasts the run
    changed: bool = False
    #: what was taken from the client when its connection was cut
    cut: tuple[Any, ...] | None = None
    #: how long the client reads (s; None: for ever); when its command was sent, and began to wait, in µs
    reads: float | None = None
    sent: int = 0
    since: int = 0
    #: its place in the line of those that wait, when the client gave up
    place: int = 0
    #: the connection of the client that has given up, and how long that one reads (gates/mariadb/unheard.py)
    left_by: tuple[Any, float] | None = None

    def mend(self, driver: Driver, connection: Any) -> None:
        """Reset the session to what it was."""
        if self.left_by:
            (client, self.reads), self.left_by = self.left_by, None
            connection = driver.hand_back(connection, client)
        if self.cut:
            driver.give_back(connection, self.cut)
            self.cut = None
        if not driver.is_open(connection):
            return
        if self.changed:
            driver.begin_again(connection)
            for statement in (*self.settings, *_waits(self.usual)):
                driver.run(connection, statement)
            self.told, level, self.level = None, self.level, ""
            self.begins_at(driver, connection, level)
        if driver.commits_by_itself(connection) is not self.autocommit:
            driver.run(connection, f"SET autocommit = {self.autocommit:d}")
        driver.wish_autocommit(connection, self.autocommit)
        if driver.inside(connection):
            raise RuntimeError(f"session {driver.number(connection)} is left inside a transaction")
        self.changed, self.late, self.patience, self.alone = False, "", self.usual, False
        self.holds, self.names, self.keeps, self.tables, self.locked = b"", frozenset(), False, False, False

    def begins_at(self, driver: Driver, connection: Any, level: str) -> None:
        """From now on its transactions begin at this level, if they do not ask for one."""
        if level != self.level:
            self.level = level
            name = (level or self.isolation).upper().replace("-", " ")
            driver.run(connection, f"SET SESSION TRANSACTION ISOLATION LEVEL {name}")

    def wait(self, kind: str, now: int) -> Wait:
        """How long its command may wait from now on. MariaDB looks every second whether the client of a command is
        still there that waits for a name, and never for one that waits for a row."""
        wait = self.patience.wait(kind, self.asks, self.usual)
        if self.left_by:
            waited = (now - self.since) / SECOND
            rest = None if wait.seconds is None else max(wait.seconds - waited, 0.0)
            if kind == NAMED_LOCK:
                until = LOOKS_FOR_ITS_CLIENT - waited % LOOKS_FOR_ITS_CLIENT
                rest = until if rest is None else min(rest, until)
            return wait._replace(seconds=rest, in_vain=False)
        if self.reads is None:
            return wait
        seconds = max(self.reads - (now - self.sent) / SECOND, 0.0)
        sooner = wait.seconds is None or seconds <= wait.seconds
        return Wait(kind, seconds, GIVES_UP_READING, in_vain=True) if sooner else wait

    @property
    def isolated(self) -> str:
        return (self.level or self.isolation).upper().replace(" ", "-")

    def status(self, driver: Driver, connection: Any) -> Status:
        """Its status, as the memoised server keeps it."""
        if self.cut or not driver.is_open(connection):
            return Status(cut=True)
        inside, commits = driver.inside(connection), driver.commits_by_itself(connection)
        return Status(inside, commits, self.holds, keeps=self.keeps, locked=inside and self.locked)


def session_of(connection: Any) -> MariadbSession:
    found: MariadbSession = connection.explorer_session
    return found


def look(driver: Driver, connection: Any) -> MariadbSession:
    """Look at a connection that is seen for the first time. In real time it waits for ever from now on."""
    settings = tuple(_setting(*row) for row in driver.run(connection, SETTINGS))
    patience, isolation = _patience(driver, connection)
    for statement in _waits(patience):
        driver.run(connection, statement)
    limits = driver.run(connection, _ENDS)
    if limits:
        driver.run(connection, STAYS)
    ends_by = (str(limits[0][0]), str(limits[0][1])) if limits else None
    autocommit, reads = driver.commits_by_itself(connection), driver.reads_for_ever(connection)
    return MariadbSession(settings, autocommit, isolation, patience, patience, ends_by, reads=reads)


def look_again(driver: Driver, connection: Any) -> None:
    """The session was told how long its commands may wait, or take."""
    session = session_of(connection)
    found, _ = _patience(driver, connection)
    asked = session.asks.lower()  # what it was not told still is what was lifted
    rows = found.rows if ROWS in asked else session.patience.rows
    statement = found.statement if STATEMENT in asked else session.patience.statement
    session.patience = Patience(rows, statement)
    for each in _waits(session.patience):
        driver.run(connection, each)


def ended(driver: Driver, connection: Any, interrupt: Callable[[Any], None]) -> bool:
    """Roll back, and release everything. Returns whether there was anything."""
    session = session_of(connection)
    if not driver.is_open(connection):
        return False
    if session.busy:
        interrupt(connection)
        driver.hear_out(connection)
        session.busy = False
    inside, held = driver.inside(connection), bool(session.holds)
    if inside:
        driver.run(connection, "ROLLBACK")
        session.locked = False
    if held:
        driver.run(connection, "SELECT RELEASE_ALL_LOCKS()")
        driver.run(connection, "UNLOCK TABLES")
        session.holds, session.keeps = b"", False
    return inside or held


def _patience(driver: Driver, connection: Any) -> tuple[Patience, str]:
    """Also the isolation level."""
    rows, statement, isolation = driver.run(connection, PATIENCE)[0]
    return Patience(None if float(rows) > _LONGEST else float(rows), float(statement) or None), str(isolation)


def _waits(patience: Patience) -> tuple[str, ...]:
    """A session that never waits still does not."""
    lifted = f"SET SESSION {ROWS} = {0 if patience.rows == 0 else FOR_EVER}"
    return (lifted, f"SET SESSION {STATEMENT} = 0") if patience.statement else (lifted,)


def _setting(name: str, value: str, kind: str) -> str:
    shown = value if kind.startswith(("BIGINT", "INT", "DOUBLE")) else "'" + value.replace("'", "''") + "'"
    return f"SET SESSION {name} = {shown}"
