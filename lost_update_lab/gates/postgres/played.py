"""A session whose server is played: libpq is connected to this process, and reads replies that are known.

psycopg and libpq are the real ones, so what a worker sees of its session (rows, errors, the status of its transaction)
is what they make of the bytes that PostgreSQL would have sent:

    libpq: Query "SELECT …"                          → PlayedSession.answers()
           RowDescription, DataRow, …, CommandComplete, ReadyForQuery ←

The format of these messages: https://www.postgresql.org/docs/current/protocol-message-formats.html
"""

from __future__ import annotations

import select
import socket
import struct
import tempfile
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

from psycopg import pq
from psycopg.pq import ConnStatus, DiagnosticField, ExecStatus, PollingStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult

from lost_update_lab.model.errors import Unanswered

#: what a server reports of a session: clients read values by it
REPORTED = (
    b"server_version",
    b"server_encoding",
    b"client_encoding",
    b"application_name",
    b"default_transaction_read_only",
    b"in_hot_standby",
    b"is_superuser",
    b"session_authorization",
    b"search_path",
    b"DateStyle",
    b"IntervalStyle",
    b"TimeZone",
    b"integer_datetimes",
    b"standard_conforming_strings",
    b"scram_iterations",
)
_STATUS = {TransactionStatus.IDLE: b"I", TransactionStatus.INTRANS: b"T", TransactionStatus.INERROR: b"E"}
_KNOWN = (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK, ExecStatus.EMPTY_QUERY, ExecStatus.FATAL_ERROR)
#: s; both ends are in this process
WITHIN = 5.0
_PORT = 5432


class PlayedSession:
    """`like`: the session whose parameters it has."""

    def __init__(self, like: PGconn) -> None:
        self.reported = reported(like)
        self.pgconn, self._end = _connected(like)
        self._unread = b""

    def close(self) -> None:
        self.pgconn.finish()
        self._end.close()

    def answers(self, gen: Generator[Any, Any, Any], results: Sequence[PGresult], status: int) -> Any:
        """Run psycopg's generator, which sends commands, to its end. Each is answered by these results, or by its tag
        if there are none. `status`: of the transaction then. Returns and raises what the generator does. Raises
        Unanswered if that cannot be played."""
        if status not in _STATUS or not all(result.status in _KNOWN for result in results):
            raise Unanswered
        try:
            wants = next(gen)
            while True:
                wants = gen.send(self._ready(int(wants), results, _STATUS[TransactionStatus(status)]))
        except StopIteration as done:
            return done.value

    def becomes_idle(self) -> bool:
        """As after a ROLLBACK that nobody asked for. Returns whether it can be used again."""
        if self.pgconn.status != ConnStatus.OK or self.pgconn.transaction_status not in _STATUS:
            return False
        if self.pgconn.transaction_status != TransactionStatus.IDLE:
            self.pgconn.send_query(b"ROLLBACK")
            while self.pgconn.flush():
                pass
            while self.pgconn.is_busy():
                self._ready(1, (), b"I")
                self.pgconn.consume_input()
            while self.pgconn.get_result():
                pass
        return self.pgconn.transaction_status == TransactionStatus.IDLE

    def _ready(self, wants: int, results: Sequence[PGresult], status: bytes) -> int:
        """Answer what was sent. Returns for what libpq is ready, of that for which it waits."""
        poller = select.poll()
        poller.register(self._end, select.POLLIN)
        poller.register(self.pgconn.socket, (select.POLLIN * (wants & 1)) | (select.POLLOUT * (wants >> 1)))
        for _ in range(int(WITHIN)):
            for file, flags in poller.poll(1000):
                if file == self.pgconn.socket:
                    return (1 if flags & ~select.POLLOUT else 0) | (2 if flags & select.POLLOUT else 0)
                self._unread += self._end.recv(1 << 16)
                self._end.sendall(b"".join(self._replies(results, status)))
        raise Unanswered

    def _replies(self, results: Sequence[PGresult], status: bytes) -> Iterator[bytes]:
        """To each message that came whole."""
        while len(self._unread) >= 5 and len(self._unread) > (size := _number(self._unread[1:5])):
            kind, body, self._unread = self._unread[:1], self._unread[5 : size + 1], self._unread[size + 1 :]
            if kind == b"Q":
                yield from _rows(results, body) if results else (_tag(body),)
            elif kind == b"P":
                self._text = body.split(b"\0")[1]
                yield _message(b"1")
            elif kind == b"B":
                yield _message(b"2")
            elif kind == b"C":
                yield _message(b"3")
            elif kind == b"E":
                yield from _rows(results, self._text) if results else (_tag(self._text),)
            elif kind not in (b"D", b"S"):
                raise Unanswered
            if kind in (b"Q", b"S"):
                yield _message(b"Z", status)


def reported(session: PGconn) -> tuple[bytes | None, ...]:
    return tuple(session.parameter_status(name) for name in REPORTED)


def _connected(like: PGconn) -> tuple[PGconn, socket.socket]:
    """A client, and the server's end of its connection."""
    with tempfile.TemporaryDirectory(prefix="played-") as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(Path(folder, f".s.PGSQL.{_PORT}")))
        listener.listen(1)
        words = {"host": folder, "port": _PORT, "user": like.user, "dbname": like.db, "options": like.options}
        told = " ".join(f"{name}='{_quoted(value)}'" for name, value in words.items() if value)
        client = pq.PGconn.connect_start(f"{told} sslmode=disable gssencmode=disable".encode())
        end, _ = listener.accept()
    end.settimeout(WITHIN)
    reply = _message(b"R", bytes(4)) + _message(b"K", struct.pack("!ii", like.backend_pid, 0))
    for name in REPORTED:
        if (value := like.parameter_status(name)) is not None:
            reply += _message(b"S", name + b"\0" + value + b"\0")
    reply += _message(b"Z", b"I")
    while (wants := client.connect_poll()) not in (PollingStatus.OK, PollingStatus.FAILED):
        if wants == PollingStatus.READING and reply:
            end.recv(1 << 16)  # its startup message
            end.sendall(reply)
            reply = b""
        files = ([client.socket], []) if wants == PollingStatus.READING else ([], [client.socket])
        select.select(*files, [], WITHIN)
    if client.status != ConnStatus.OK:
        raise RuntimeError(f"a session that is played: {client.error_message!r}")
    client.nonblocking = 1
    return client, end


def _quoted(value: Any) -> str:
    text = value.decode() if isinstance(value, bytes) else str(value)
    return text.replace("\\", "\\\\").replace("'", "\\'")


def _number(four: bytes) -> int:
    return int.from_bytes(four, "big")


def _message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def _tag(text: bytes) -> bytes:
    """The reply to a command whose result nobody reads."""
    return _message(b"C", text.split()[0].rstrip(b";\0").upper() + b"\0")


def _rows(results: Sequence[PGresult], text: bytes) -> Iterator[bytes]:
    for result in results:
        if result.status == ExecStatus.FATAL_ERROR:
            yield _error(result)
        elif result.status == ExecStatus.EMPTY_QUERY:
            yield _message(b"I")
        else:
            if result.status == ExecStatus.TUPLES_OK:
                yield _description(result)
                for row in range(result.ntuples):
                    yield _row([result.get_value(row, column) for column in range(result.nfields)])
            yield _message(b"C", (result.command_status or b"") + b"\0")


def _description(result: PGresult) -> bytes:
    columns = range(result.nfields)
    fields = [
        (result.fname(c) or b"")
        + b"\0"
        + struct.pack(
            "!IhIhih",
            result.ftable(c),
            result.ftablecol(c),
            result.ftype(c),
            result.fsize(c),
            result.fmod(c),
            result.fformat(c),
        )
        for c in columns
    ]
    return _message(b"T", struct.pack("!h", len(fields)) + b"".join(fields))


def _row(values: Sequence[bytes | None]) -> bytes:
    shown = [struct.pack("!i", -1) if v is None else struct.pack("!i", len(v)) + v for v in values]
    return _message(b"D", struct.pack("!h", len(values)) + b"".join(shown))


def _error(result: PGresult) -> bytes:
    fields = [(field, result.error_field(field)) for field in DiagnosticField]
    told = [bytes([field]) + value + b"\0" for field, value in fields if value is not None]
    return _message(b"E", b"".join(told) + b"\0")
