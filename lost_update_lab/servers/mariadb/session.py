"""A session of MariaDB as the explorer knows it: how it was made, what it holds, and how it is reset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

#: what was set in this session, and differs from the server's default
SETTINGS = """
SELECT variable_name, session_value, variable_type FROM information_schema.system_variables
WHERE variable_scope = 'SESSION' AND read_only = 'NO' AND session_value <> global_value
AND variable_name NOT IN ('TIMESTAMP', 'RAND_SEED1', 'RAND_SEED2', 'INSERT_ID', 'LAST_INSERT_ID', 'IDENTITY',
    'PSEUDO_THREAD_ID', 'PSEUDO_SLAVE_MODE', 'GTID_SEQ_NO', 'GTID_DOMAIN_ID', 'SERVER_ID', 'SQL_LOG_BIN')
"""
PATIENCE = "SELECT @@SESSION.innodb_lock_wait_timeout"
#: s; in real time a command waits for a lock until the scheduler says that its time is over
FOR_EVER = 86_400
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


@dataclass(slots=True)
class Session:
    """`settings`: statements that make a new session like this one. `autocommit`: as it was when first seen."""

    settings: tuple[str, ...]
    autocommit: bool
    #: how many s a command waits for a row, by default and now; None: for ever
    usual_patience: float | None
    patience: float | None
    who: Any = None
    #: a command was sent and its answer not read yet; `asks`: which command; `late`: its time was over
    busy: bool = False
    asks: str = ""
    late: bool = False
    #: how it came to hold what it holds beyond its transactions
    holds: bytes = b""
    #: a setting was changed that outlasts the run
    changed: bool = False
    #: what was taken from the client when its connection was cut
    cut: tuple[Any, ...] | None = None

    def mend(self, driver: Driver, connection: Any) -> None:
        """Reset the session to what it was."""
        if self.cut:
            driver.give_back(connection, self.cut)
            self.cut = None
        if not driver.is_open(connection):
            return
        if self.changed:
            driver.begin_again(connection)
            for statement in (*self.settings, _waits(self.usual_patience)):
                driver.run(connection, statement)
        if driver.commits_by_itself(connection) is not self.autocommit:
            driver.run(connection, f"SET autocommit = {self.autocommit:d}")
        driver.wish_autocommit(connection, self.autocommit)
        if driver.inside(connection):
            raise RuntimeError(f"session {driver.number(connection)} is left inside a transaction")
        self.changed = self.late = False
        self.patience = self.usual_patience


def session_of(connection: Any) -> Session:
    found: Session = connection.explorer_session
    return found


def look(driver: Driver, connection: Any) -> Session:
    """Look at a connection that is seen for the first time. In real time it waits for ever from now on."""
    settings = tuple(_setting(*row) for row in driver.run(connection, SETTINGS))
    patience = _patience(driver, connection)
    driver.run(connection, _waits(patience))
    return Session(settings, driver.commits_by_itself(connection), patience, patience)


def look_again(driver: Driver, connection: Any) -> None:
    """The session was told how long to wait for a row."""
    session = session_of(connection)
    session.patience = _patience(driver, connection)
    driver.run(connection, _waits(session.patience))


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
    if held:
        driver.run(connection, "SELECT RELEASE_ALL_LOCKS()")
        driver.run(connection, "UNLOCK TABLES")
        session.holds = b""
    return inside or held


def _patience(driver: Driver, connection: Any) -> float | None:
    seconds = float(driver.run(connection, PATIENCE)[0][0])
    return None if seconds > _LONGEST else seconds


def _waits(patience: float | None) -> str:
    """A session that never waits still does not."""
    return f"SET SESSION innodb_lock_wait_timeout = {0 if patience == 0 else FOR_EVER}"


def _setting(name: str, value: str, kind: str) -> str:
    shown = value if kind.startswith(("BIGINT", "INT", "DOUBLE")) else "'" + value.replace("'", "''") + "'"
    return f"SET SESSION {name} = {shown}"
