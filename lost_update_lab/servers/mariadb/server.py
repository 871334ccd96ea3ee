"""MariaDB as the scheduler sees it: what is committed, which command is blocked, how sessions end."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from lost_update_lab.model.commands import Op
from lost_update_lab.model.digest import digest
from lost_update_lab.model.errors import Broken
from lost_update_lab.model.memoised_server import MemoisedServer
from lost_update_lab.model.server_defaults import Plain
from lost_update_lab.model.workers import Task
from lost_update_lab.servers.mariadb import locks
from lost_update_lab.servers.mariadb.bypass import BypassDetector, made
from lost_update_lab.servers.mariadb.session import Driver, ended, session_of
from lost_update_lab.snapshot.mariadb import MariaDBSnapshot, Rows

NAME = "mariadb"
ENDS = frozenset({"COMMIT", "ROLLBACK"})
NO_TABLES = "the explorer sees locks of rows and of names, and none of whole tables (LOCK TABLES, DDL)"
BY_ROWS = "lock a row, or a name (GET_LOCK)"
#: under these isolation levels a plain SELECT meets what others have not committed
_MEETS = re.compile(r"SERIALIZABLE|UNCOMMITTED", re.IGNORECASE)
_DRAWS = re.compile(
    r"\s*(?:UPDATE|DELETE|SELECT|COMMIT|ROLLBACK|SET|BEGIN|START|SAVEPOINT|RELEASE)\b", re.IGNORECASE
)
#: one version of the contents: the part that makes a state, all of them, and the rows that ever existed
_Look = tuple[bytes, bytes, Collection[str]]


class MariaDBServer(Plain):
    """`connect`: makes a connection of the explorer's own to the database. `driver`: how to talk past the gates.
    `left_out`: columns that make no state, such as times of day. `besides`: tables that no schedule writes."""

    name = NAME
    lags = learns = False

    def __init__(
        self,
        connect: Callable[[], Any],
        driver: Driver,
        left_out: Collection[str] = (),
        besides: Collection[str] = (),
    ) -> None:
        self._connect, self.driver, self._left_out = connect, driver, frozenset(left_out)
        self.admin, self._holder = self._mine(), self._mine()
        self.snapshot = MariaDBSnapshot(self.ask, self._held, besides)
        self._bypass = BypassDetector(self.ask, self._next_number)
        self._seen: dict[int, _Look] = {}
        self.version, self.strict = 0, False
        self._ask = self.changed = True
        self._written: set[str] = set()
        #: how numbers were drawn from counters
        self._numbers = b""
        #: what sessions hold beyond their transactions, by how they came to hold it
        self._held_by: dict[Any, bytes] = {}

    def _mine(self) -> Any:
        connection = self._connect()
        made().add(self.driver.number(connection))
        self.driver.run(connection, "SET SESSION autocommit = 1")
        return connection

    def _next_number(self) -> int:
        probe = self._mine()
        try:
            return self.driver.number(probe)
        finally:
            self.driver.close(probe)

    @property
    def address(self) -> str:
        """The address by which clients reach it."""
        return self.driver.address(self.admin)

    def ask(self, text: str) -> tuple[tuple[Any, ...], ...]:
        """One round trip beside the gates."""
        return self.driver.run(self.admin, text)

    def _held(self, text: str) -> tuple[tuple[Any, ...], ...]:
        return self.driver.run(self._holder, text)

    def begin(self, known: int = -1) -> None:
        self._seen = {version: look for version, look in self._seen.items() if version <= known}
        self.version, self._ask, self.changed = 0, True, False
        self._numbers, self._held_by = b"", {}
        self._look()

    def restore(self) -> None:
        """Undo what the last run has written. The system calls this when it is reset."""
        self.snapshot.restore(self._written)
        self._written.clear()

    # -- what it holds ------------------------------------------------------------------------------------------

    def touched(self) -> None:
        self.version, self.changed = self.version + 1, True
        self._look()  # now: a row that is soon deleted leaves its traces in the indexes

    def before_step(self, op: Op) -> None:
        self.strict |= bool(_MEETS.search(op.text))
        if op.reads:
            return
        named = self.snapshot.named_in(op.text) if op.text not in ENDS else set()
        self._written |= named
        if not _DRAWS.match(op.text) and any(self.snapshot.tables[name].numbers for name in named):
            self._numbers = digest(self._numbers, op.identity)

    def ask_again(self) -> None:
        """A command has ended, so others may be free."""
        self._ask = True

    def contents(self) -> bytes:
        return self._look()[0]

    def traces(self) -> bytes:
        return self._look()[1]

    def hidden(self) -> bytes:
        """Rows that existed and are gone: gap locks begin and end at them. The number that is drawn next. What is held
        beyond transactions."""
        now, ever = self._look()[0], self._look()[2]
        held = sorted((who, by) for who, by in self._held_by.items())
        if len(ever) == now.count(b"\n") and not self._numbers and not held:
            return b""
        return digest(repr(sorted(ever)).encode(), self._numbers, repr(held).encode())

    def _look(self) -> _Look:
        """Look once for each version."""
        if self.version not in self._seen:
            rows = self.snapshot.rows()
            lines = self._lines(rows)
            before = self._seen[self.version - 1][2] if self.version - 1 in self._seen else frozenset[str]()
            contents = "".join(f"{line}\n" for line in lines).encode()
            self._seen[self.version] = contents, repr(rows).encode(), frozenset(before) | set(lines)
        return self._seen[self.version]

    def _lines(self, rows: Rows) -> list[str]:
        lines = []
        for name, of_table in rows.items():
            columns = self.snapshot.tables[name].columns
            kept = [place for place, column in enumerate(columns) if column not in self._left_out]
            lines += [f"{name} {[row[place] for place in kept]!r}" for row in of_table]
        return lines

    def memoised(self) -> MemoisedServer:
        return MemoisedServer(self.contents(), {}, self.traces())  # never asked: each schedule is executed

    # -- which command is blocked -------------------------------------------------------------------------------

    def waits_for(self, connection: Any, op: Op) -> str:
        """What its command waits for: "rows", or a "name". "": nothing. Raises Broken for a lock on a whole table."""
        self._ask = True
        number = self.driver.number(connection)
        found = locks.waits_for(self.ask, number, op.text)
        if not found and (state := self.ask(locks.TABLES.format(number))):
            raise Broken(f"{state[0][0]} ({op.text[:80]}): {NO_TABLES}", BY_ROWS)
        return found

    def freed(self, waiting: Sequence[Task]) -> list[Task]:
        if not self._ask:
            return []
        self._ask = False
        of = {task: (self.driver.number(task.session), task.op.text) for task in waiting if task.op}
        return locks.settle(of, self.ask, lambda task, ms: self.driver.has_answered(task.session, ms))

    def interrupt(self, connection: Any) -> None:
        """End the waiting command, and nothing else of the session. If the command is no longer blocked, hear it out:
        the interruption would come too late, and strike the next command."""
        number, text = self.driver.number(connection), session_of(connection).asks
        while not self.driver.has_answered(connection, 0):
            if locks.waits_for(self.ask, number, text) or self.ask(locks.TABLES.format(number)):
                self.ask(f"KILL QUERY {number}")
                break
            self.driver.has_answered(connection, locks.NEWS_WITHIN_MS)
        self._ask = True

    # -- sessions -----------------------------------------------------------------------------------------------

    def note(self, connection: Any, holds: bytes) -> None:
        """A command has ended. `holds`: how the session came to hold what it holds beyond its transactions."""
        session_of(connection).holds = holds
        self._held_by[session_of(connection).who] = holds

    def end_sessions(self, sessions: Sequence[Any], cut: bool = False) -> None:
        """Do to each session what its end would do: roll back, drop its locks."""
        for connection in sessions:
            if ended(self.driver, connection, self.interrupt):
                self._held_by.pop(session_of(connection).who, None)
                self._ask = True

    def undisturbed(self, op: Op, own: Sequence[Any], others: Sequence[Any]) -> bool:
        """A plain SELECT reads what is committed, whenever the snapshot of its transaction was taken."""
        return (op.reads and not self.strict) or op.text in ENDS or not self.holds(others)

    def holds(self, sessions: Sequence[Any]) -> bool:
        live = [each for each in sessions if self.driver.is_open(each)]
        return any(self.driver.inside(each) or session_of(each).holds for each in live)

    def settle(self, sessions: Sequence[Any]) -> None:
        """After each run: every session is as it was when it was made."""
        self.end_sessions(sessions)
        for connection in sessions:
            session_of(connection).mend(self.driver, connection)

    def watch(self) -> None:
        self._bypass.watch()

    def bypassed(self) -> str:
        return self._bypass.bypassed()

    def close(self) -> None:
        self.restore()
        self.snapshot.drop()
        for connection in (self.admin, self._holder):
            self.driver.close(connection)
