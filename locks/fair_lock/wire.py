"""A wire: one connection of a Redis client that hears a channel of its own, for scripts and for being woken.

It is made as the client's pool makes its connections (TCP, unix socket, TLS, password, sentinels), but kept
beside the pool: a checkout costs the pool a system call and more Python than the command itself, and a waiter
must not use up the connections that the work inside the lock needs. It always speaks RESP3, in which replies
and messages share one connection, and it re-sends nothing by itself. `locks.fair_lock.direct_wire` is its fast form.
"""

from __future__ import annotations

import secrets
import time
from typing import Any, NamedTuple

from redis.backoff import NoBackoff
from redis.connection import ConnectionPool
from redis.exceptions import ConnectionError, NoScriptError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.maint_notifications import MaintNotificationsConfig
from redis.retry import Retry

from locks.fair_lock.call import Call, Questions, ScriptCall, unpacked

INCOMPLETE = object()
ENOUGH = 256  # bytes: a number, or a message
BATCH = 64  # tokens that are packed at once
NAMES = 16  # locks for which a wire keeps some
DIGITS = 16  # of a number: it began with a clock that counts microseconds
REST = DIGITS + len(b"\r\n")  # of a message, behind its token
MESSAGE = b">3\r\n$7\r\nmessage\r\n$16\r\n%b\r\n$%d\r\n"  # channel, length of the rest

#: a packed token, and how the message of its hand-over begins
Ready = tuple[bytes, bytes]
PATIENCE = 5.0  # seconds for a reply, where the client itself would wait for ever


class Wake(NamedTuple):
    """A message: the lock was handed to `token`, with this fencing number."""

    token: bytes
    number: int


class Wire:
    """Used by one thread at a time. Raises what redis-py raises; after an error it connects anew by itself."""

    _unread: Any = INCOMPLETE  # what was kept

    def __init__(self, pool: ConnectionPool) -> None:
        settings = pool.connection_kwargs
        self._timeout = settings.get("socket_timeout") or PATIENCE
        self._connection: Any = pool.connection_class(
            **settings
            | {
                "protocol": 3,
                "decode_responses": False,
                "retry": Retry(NoBackoff(), 0),
                "retry_on_error": [],
                "retry_on_timeout": False,
                "health_check_interval": 0,
                "socket_timeout": self._timeout,
                "maint_notifications_config": MaintNotificationsConfig(enabled=False),
                "maint_notifications_pool_handler": None,
            }
        )
        self._connection.register_connect_callback(self._listen)
        self.channel = secrets.token_hex(8).encode()
        self._attempts = 0
        self._wake: Wake | None = None
        #: for the short way, see `prepare`
        self.ready: dict[Questions, list[Ready]] = {}

    def put(self, command: bytes) -> None:
        """Raises OSError when it was certainly not sent as a whole: disconnect then."""
        if not self._connection.is_connected:
            raise OSError("not connected")
        try:
            self._send(command)
        except (ConnectionError, RedisTimeoutError) as error:
            raise OSError(str(error)) from error

    def hear(self, most: int) -> bytes:
        """What came of `put`, as it stood on the wire, if it is a number. Whatever is not of use has to be kept.
        Raises OSError when nothing came yet, or the connection broke. `most`: bytes, where they are counted."""
        del most
        try:
            reply = self._read(self._timeout)
        except ResponseError as error:
            reply = error
        except (ConnectionError, RedisTimeoutError) as error:
            self.disconnect()
            raise OSError(str(error)) from error
        if type(reply) is int:
            return b":%d\r\n" % reply
        self._unread = reply
        return b""

    def keep(self, heard: bytes) -> None:
        """It is read again: `finish` has to understand it."""
        if heard:
            self._unread = int(heard[1:])

    def first(self) -> Any:
        """Of what was kept, if it can be told: a number, an error, a message. Else INCOMPLETE."""
        return INCOMPLETE

    def finish(self, call: Call, word: bytes, reply: Any) -> Any:
        """As `ask`, after `put` and `hear`. `reply`: the number that was heard, else INCOMPLETE."""
        if reply is not INCOMPLETE:
            self._wake = None
            return reply
        try:
            return self._reply(self._timeout)
        except NoScriptError:
            assert isinstance(call, ScriptCall)
            return self._exchange(call.with_text + word, self._timeout)

    def _listen(self, connection: Any) -> None:
        """Before anything is queued: whom PUBLISH does not reach is taken for dead."""
        try:
            connection._parser.set_pubsub_push_handler(self._heard)
            connection.send_command("SUBSCRIBE", self.channel, check_health=False)
            connection.read_response(push_request=True)
        except BaseException:
            connection.disconnect()  # or it would be used again, deaf
            raise

    def _heard(self, message: list[Any]) -> Any:
        if message[0] != b"message":
            return message
        token, number = message[2].split()
        self._wake = Wake(token, int(number))
        return self._wake

    def new_word(self, calls: Questions) -> bytes:
        """A packed token. As the channel in it is random, nobody guesses it."""
        self._attempts += 1
        return calls.word % (self.channel, self._attempts)

    def prepare(self, calls: Questions) -> None:
        """Pack tokens for the next acquires: at once they cost a tenth of what each costs alone. Not at the first
        call for a lock: it may be the last one."""
        if not self._connection.is_connected:
            return
        if calls not in self.ready:
            if len(self.ready) == NAMES:
                self.ready.clear()
            self.ready[calls] = []
        elif not self.ready[calls]:
            told = MESSAGE % (self.channel, calls.length + 1 + DIGITS)
            words = [self.new_word(calls) for _ in range(BATCH)]
            self.ready[calls] = [(word, told + unpacked(word) + b" ") for word in words]

    def ask(self, call: Call, word: bytes, timeout: float | None = None) -> Any:
        """Make one round trip and return the reply; a server that forgot a script is brought its text.

        `word`: the last one, `packed`. `timeout`: seconds, if shorter than the client's own.
        """
        limit = self._timeout if timeout is None else min(timeout, self._timeout)
        try:
            return self._exchange(call.packed + word, limit)
        except NoScriptError:
            assert isinstance(call, ScriptCall)
            return self._exchange(call.with_text + word, limit)

    def _exchange(self, command: bytes, timeout: float) -> Any:
        try:
            if not self._connection.is_connected:
                self._connect_within(timeout)
            self._send(command)
        except BaseException:
            self.disconnect()
            raise
        return self._reply(timeout)

    def _reply(self, timeout: float) -> Any:
        try:
            reply = self._receive(timeout)
            while type(reply) is Wake:  # it stood before the reply, so it is older than the reply
                reply = self._receive(timeout)
        except ResponseError:
            raise
        except BaseException:
            self.disconnect()  # a reply may be on its way, and would answer the next question
            raise
        self._wake = None
        return reply

    def _connect_within(self, timeout: float) -> None:
        connection = self._connection
        usual = connection.socket_connect_timeout
        connection.socket_connect_timeout = connection.socket_timeout = timeout
        try:
            connection.connect()
        finally:
            connection.socket_connect_timeout, connection.socket_timeout = usual, self._timeout

    def _send(self, command: bytes) -> None:
        self._connection.send_packed_command((command,), False)

    def _receive(self, timeout: float) -> Any:
        """Return the next reply or message. Raises redis-py's TimeoutError, and whatever else it raises."""
        reply, self._unread = self._unread, INCOMPLETE
        if reply is INCOMPLETE:
            reply = self._read(timeout)
        if isinstance(reply, Exception):
            raise reply
        return self._heard(reply) if isinstance(reply, list) else reply

    def _read(self, timeout: float) -> Any:
        return self._connection.read_response(push_request=True, timeout=timeout, disconnect_on_error=False)

    def await_wake(self, token: bytes, seconds: float) -> Wake | None:
        """Wait until the lock is handed to `token`; None when it was not in time."""
        until = time.monotonic() + seconds
        try:
            while self._wake is None or self._wake.token != token:
                left = until - time.monotonic()
                if left <= 0:
                    return None
                self._receive(left)
        except RedisTimeoutError:
            return None
        except BaseException:
            self.disconnect()
            raise
        return self._wake

    def disconnect(self) -> None:
        """The server then takes this wire's waiter for dead."""
        self.ready.clear()
        self._unread = INCOMPLETE
        self._connection.disconnect()
