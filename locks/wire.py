"""A wire: one connection of a Redis client that hears a channel of its own, for scripts and for being woken.

It is made as the client's pool makes its connections (TCP, unix socket, TLS, password, sentinels), but kept
beside the pool: a checkout costs the pool a system call and more Python than the command itself, and a waiter
must not use up the connections that the work inside the lock needs. It always speaks RESP3, in which replies
and messages share one connection, and it re-sends nothing by itself.
"""

from __future__ import annotations

import secrets
import socket
import struct
import time
from typing import Any, NamedTuple

from redis.backoff import NoBackoff
from redis.connection import ConnectionPool
from redis.exceptions import NoScriptError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.maint_notifications import MaintNotificationsConfig
from redis.retry import Retry

from locks.call import Call, ScriptCall

PATIENCE = 5.0  # seconds for a reply, where the client itself would wait for ever


class Wake(NamedTuple):
    """A message: the lock was handed to `token`, with this fencing number."""

    token: bytes
    number: int


class Wire:
    """Used by one thread at a time. Raises what redis-py raises; after an error it connects anew by itself."""

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

    def _listen(self, connection: Any) -> None:
        """Before anything is queued: whom PUBLISH does not reach is taken for dead."""
        try:
            connection._parser.set_pubsub_push_handler(self._heard)
            connection.send_command("SUBSCRIBE", self.channel, check_health=False)
            connection.read_response(push_request=True)
            self._leave_time_outs_to_the_kernel(connection)
        except BaseException:
            connection.disconnect()  # or it would be used again, deaf
            raise

    def _leave_time_outs_to_the_kernel(self, connection: Any) -> None:
        """Python's own time-out costs a poll() before each send() and recv(). A late reply is the same
        ConnectionError either way."""
        seconds, fraction = divmod(self._timeout, 1)
        limit = struct.pack("ll", int(seconds), int(fraction * 1_000_000))
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            connection._get_socket().setsockopt(socket.SOL_SOCKET, option, limit)
        connection.update_current_socket_timeout(None)

    def _heard(self, message: list[Any]) -> Any:
        if message[0] != b"message":
            return message
        token, number = message[2].split()
        self._wake = Wake(token, int(number))
        return self._wake

    def new_word(self, lease: int) -> bytes:
        """A packed token, `lease` (ms) in it. As the channel in it is random, nobody guesses it."""
        self._attempts += 1
        token = b"%s:%d:%d" % (self.channel, self._attempts, lease)
        return b"$%d\r\n%s\r\n" % (len(token), token)

    def ask(self, call: Call, word: bytes, timeout: float | None = None) -> Any:
        """Make one round trip and return the reply; a server that forgot a script is brought its text.

        `word`: the last one, `packed`. `timeout`: seconds, if shorter than the client's own.
        """
        connection = self._connection
        try:
            if timeout is not None and timeout < self._timeout:
                return self._ask_within(call.packed + word, timeout)
            connection.send_packed_command((call.packed + word,), False)
            reply = connection.read_response(push_request=True)
            while type(reply) is Wake:  # it stood before the reply, so it is older than the reply
                reply = connection.read_response(push_request=True)
            self._wake = None
            return reply
        except NoScriptError:
            assert isinstance(call, ScriptCall)
            return self._ask_within(call.with_text + word, self._timeout if timeout is None else timeout)
        except ResponseError:
            raise
        except BaseException:
            connection.disconnect()  # a reply may be on its way, and would answer the next question
            raise

    def _ask_within(self, command: bytes, timeout: float) -> Any:
        connection = self._connection
        try:
            if not connection.is_connected:
                self._connect_within(timeout)
            connection.send_packed_command((command,), False)
            reply = connection.read_response(push_request=True, timeout=timeout)
            while type(reply) is Wake:
                reply = connection.read_response(push_request=True, timeout=timeout)
        except ResponseError:
            raise
        except BaseException:
            connection.disconnect()
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

    def await_wake(self, token: bytes, seconds: float) -> Wake | None:
        """Wait until the lock is handed to `token`; None when it was not in time."""
        until = time.monotonic() + seconds
        try:
            while self._wake is None or self._wake.token != token:
                left = until - time.monotonic()
                if left <= 0:
                    return None
                self._connection.read_response(push_request=True, timeout=left, disconnect_on_error=False)
        except RedisTimeoutError:
            return None
        except BaseException:
            self._connection.disconnect()
            raise
        return self._wake

    def disconnect(self) -> None:
        """The server then takes this wire's waiter for dead."""
        self._connection.disconnect()
