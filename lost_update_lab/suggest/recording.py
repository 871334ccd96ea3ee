"""What a test suite sends to its servers, command by command, and which of the user's functions sent it.

An operation is the function that a test calls: the outermost of the user's frames that is not a test's.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

import psycopg
from redis.asyncio.connection import AbstractConnection as AsyncConnection
from redis.connection import AbstractConnection

from lost_update_lab.gates.patch import Patches
from lost_update_lab.suggest.keys import Key, Keys
from lost_update_lab.suggest.literals import CannotBeWritten, call_of, written
from lost_update_lab.telling.lines import is_own, own_line

#: commands that a Redis connection sends about itself
_HANDSHAKE = frozenset({"HELLO", "CLIENT", "AUTH", "SELECT", "PING", "INFO"})
_RETURNS = re.compile(
    r"""\s*INSERT\s+INTO\s+(?P<table>[\w."]+).*\sRETURNING\s+(?:["\w]+\.)*"?(?P<column>\w+)"?""",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class RecordedCommand:
    """`operation`: `module:function`; "": the test itself. `call`: how it was called, as Python (literals.py); None: it
    cannot be written down. `values`: those of an SQL command, or the words of a Redis command, as Python; None:
    likewise. `line`: `file:number` of the user's code. `test`: or a fixture with a wider scope (scopes.py)."""

    test: str
    server: str
    text: str
    values: str | None
    line: str
    operation: str = ""
    number: int = 0
    call: str | None = None
    #: why there is no `call`
    why: str = ""
    #: the test runs in Django's test database
    django: bool = False
    #: the first number that an INSERT was given: table, column, number. Later commands name it
    drew: Sequence[Any] = ()
    #: the keys of a Redis command (keys.py)
    keys: Sequence[Sequence[str]] = ()
    #: the fixtures with a wider scope that were set up by then
    under: Sequence[str] = ()


@dataclass
class CommandRecorder:
    """`path`: the file that gets the commands, one per line."""

    path: Path
    test: str = ""
    django: bool = False
    commands: list[RecordedCommand] = field(default_factory=list)
    #: the fixtures with a wider scope that are set up
    under: list[str] = field(default_factory=list)
    #: that of the operation that sent the last command; it is held no longer than that
    _frame: FrameType | None = None
    _calls: int = 0
    _keys: Keys = field(default_factory=Keys)
    #: number of a call → how it was called when it sent its first command; or why that cannot be written down
    _calls_of: dict[int, tuple[str | None, str]] = field(default_factory=dict)

    def install(self, patches: Patches) -> None:
        self._psycopg(patches)
        self._psycopg_of_asyncio(patches)
        self._redis(patches, AbstractConnection)
        self._redis(patches, AsyncConnection)
        if find_spec("pymysql"):
            from pymysql.cursors import Cursor

            self._mariadb(patches, Cursor)
        if find_spec("aiomysql"):
            from aiomysql.cursors import Cursor as AsyncCursor

            self._mariadb(patches, AsyncCursor)

    def _psycopg(self, patches: Patches) -> None:
        execute = psycopg.Cursor.execute

        def executed(cursor: Any, query: Any, params: Any = None, **keywords: Any) -> Any:
            number = self.sql("postgres", cursor, query, params)
            answer = execute(cursor, query, params, **keywords)
            self._note_drawn(number, cursor)
            return answer

        patches.method(psycopg.Cursor, "execute", executed)
        self._many(patches, psycopg.Cursor)

    def _psycopg_of_asyncio(self, patches: Patches) -> None:
        execute = psycopg.AsyncCursor.execute

        async def executed(cursor: Any, query: Any, params: Any = None, **keywords: Any) -> Any:
            number = self.sql("postgres", cursor, query, params)
            answer = await execute(cursor, query, params, **keywords)
            self._note_drawn(number, cursor)
            return answer

        patches.method(psycopg.AsyncCursor, "execute", executed)
        self._many(patches, psycopg.AsyncCursor)

    def _many(self, patches: Patches, cursor_of: Any) -> None:
        many = cursor_of.executemany

        def all_executed(cursor: Any, query: Any, params_seq: Any, **keywords: Any) -> Any:
            every = list(params_seq)
            for params in every:
                self.sql("postgres", cursor, query, params)
            return many(cursor, query, every, **keywords)

        patches.method(cursor_of, "executemany", all_executed)

    def _note_drawn(self, number: int, cursor: Any) -> None:
        """The command with this number has its answer. 0: it is not recorded. With coroutines, it need not be the
        last."""
        if self.test and number:
            command = self.commands[number - 1]
            self.commands[number - 1] = replace(command, drew=_drew(command.text, cursor.pgresult))

    def _redis(self, patches: Patches, connection_of: Any) -> None:
        """Those of asyncio return coroutines, which are awaited by the client."""
        send: Any = connection_of.send_command
        pack_all: Any = connection_of.pack_commands

        def sent(connection: Any, *words: Any, **keywords: Any) -> Any:
            self.redis(connection, words)
            return send(connection, *words, **keywords)

        def all_packed(connection: Any, commands: Any) -> Any:
            every = list(commands)
            for words in every:
                self.redis(connection, words)
            return pack_all(connection, every)

        patches.method(connection_of, "send_command", sent)
        patches.method(connection_of, "pack_commands", all_packed)

    def _mariadb(self, patches: Patches, cursor_of: Any) -> None:
        """Its executemany() calls execute()."""
        execute = cursor_of.execute

        def executed(cursor: Any, query: Any, args: Any = None) -> Any:
            self.sql("mariadb", cursor, query, args)
            return execute(cursor, query, args)

        patches.method(cursor_of, "execute", executed)

    def sql(self, server: str, cursor: Any, query: Any, params: Any) -> int:
        """Returns the number of the command; 0: no test is running."""
        text = query.as_string(cursor) if hasattr(query, "as_string") else query
        text = text.decode(errors="replace") if isinstance(text, bytes | bytearray) else str(text)
        self._add(server, " ".join(text.split()), written(params))
        return len(self.commands) if self.test else 0

    def redis(self, connection: Any, words: Any) -> None:
        if self._keys.asking:
            return
        told = [word.decode(errors="replace") if isinstance(word, bytes) else str(word) for word in words]
        if told and told[0].upper() not in _HANDSHAKE:
            keys = self._keys.of(connection, told) if self.test else ()
            self._add("redis", " ".join(told), written(told), keys)

    def _add(self, server: str, text: str, values: str | None, keys: Sequence[Key] = ()) -> None:
        if not self.test:
            return
        name, number, call, why = "", 0, None, ""
        if frame := _operation(sys._getframe(2)):
            name = f"{frame.f_globals.get('__name__', '')}:{frame.f_code.co_qualname}"
            number = self._number(frame)
            call, why = self._calls_of[number] = self._calls_of.get(number) or _call(frame)
        where, under = str(own_line() or ""), tuple(self.under)
        self.commands.append(
            RecordedCommand(
                self.test, server, text, values, where, name, number, call, why, self.django, (), keys, under
            )
        )

    def _number(self, frame: FrameType) -> int:
        """The number of this call in the session."""
        if frame is not self._frame:
            self._frame, self._calls = frame, self._calls + 1
        return self._calls

    def begin(self, test: str, django: bool = False) -> None:
        """The next commands belong to this test. "": to none."""
        self.test, self.django, self._frame = test, django, None

    def write(self) -> None:
        self._keys.close()
        lines = [json.dumps(asdict(each), ensure_ascii=False) for each in self.commands]
        self.path.write_text("\n".join(lines), encoding="utf-8")


def _drew(text: str, result: Any) -> Sequence[Any]:
    """What an INSERT says of the number that it was given."""
    found = _RETURNS.match(text)
    if not found or not result or not result.ntuples or result.fformat(0):
        return ()
    number = result.get_value(0, 0) or b""
    return (found["table"], found["column"], int(number)) if number.isdigit() else ()


def read(path: Path) -> list[RecordedCommand]:
    return [RecordedCommand(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def _operation(frame: FrameType | None) -> FrameType | None:
    """The operation's frame. None: no function of the user's except the test."""
    found = None
    while frame:
        file = frame.f_code.co_filename
        if is_own(file):
            if is_test(file):
                return found
            found = frame
        frame = frame.f_back
    return found


def is_test(file: str) -> bool:
    name = Path(file).stem
    return name.startswith("test_") or name.endswith("_test") or name in ("conftest", "tests")


def _call(frame: FrameType) -> tuple[str | None, str]:
    """How the function was called; or None, and why that cannot be written down."""
    try:
        return call_of(frame), ""
    except CannotBeWritten as error:
        return None, str(error)
    except Exception as error:  # noqa: BLE001  (a property of the user's may raise anything, and their test goes on)
        return None, f"an argument cannot be looked at: {type(error).__name__}: {error}"
