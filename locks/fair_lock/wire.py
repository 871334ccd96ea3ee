"""A wire: one connection of a Redis client that listens on a channel of its own.

The client's pool says how it is made (TCP, unix socket, TLS, password, sentinels), but it is kept beside the pool:
a checkout costs more than the command itself, and a waiter must not use up the connections that the work inside
the lock needs. It speaks RESP3, in which replies and messages share one connection, and it re-sends nothing by
itself.
"""

from __future__ import annotations

import secrets
import time
from typing import Any

from redis.backoff import NoBackoff
from redis.connection import ConnectionPool
from redis.exceptions import NoScriptError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.maint_notifications import MaintNotificationsConfig
from redis.retry import Retry

from locks.fair_lock.questions import Question, Questions, ScriptQuestion

PATIENCE = 5.0  # seconds for a reply, where the client itself would wait for ever


class Wire:
    """Used by one thread at a time. Raises redis-py's errors; after an error it connects again by itself."""

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
        self._open = False
        self._told = b""  # the last message: `token number`, of the lock that was handed over

    def _listen(self, connection: Any) -> None:
        """Before anything is queued: a waiter that PUBLISH does not reach is taken for dead."""
        try:
            connection._parser.set_pubsub_push_handler(self._heard)
            connection.send_command("SUBSCRIBE", self.channel, check_health=False)
            connection.read_response(push_request=True)
        except BaseException:
            connection.disconnect()  # or it would be used again without its subscription
            raise
        self._open = True

    def _heard(self, message: list[Any]) -> Any:
        """Called by redis-py for each message. What it returns is what `read_response` returns."""
        if message[0] == b"message":
            self._told = message[2]
        return message

    def new_word(self, questions: Questions) -> bytes:
        """A packed token."""
        self._attempts += 1
        return questions.word % (self.channel, self._attempts)

    def ask(self, question: Question, word: bytes, timeout: float | None = None) -> Any:
        """Make one round trip and return the reply. A server that forgot the script costs one more.

        `word`: the last one, `packed`. `timeout`: seconds, if shorter than the client's own.
        """
        try:
            return self._exchange(question.packed + word, timeout)
        except NoScriptError:
            assert isinstance(question, ScriptQuestion)
            return self._exchange(question.with_text + word, timeout)

    def _exchange(self, command: bytes, timeout: float | None) -> Any:
        connection = self._connection
        limit = {} if timeout is None else {"timeout": min(timeout, self._timeout)}
        try:
            if not self._open:
                self._connect_within(timeout)
            connection.send_packed_command((command,), False)
            reply = connection.read_response(push_request=True, **limit)
            while isinstance(reply, list):  # a message from before the reply, which knows better
                reply = connection.read_response(push_request=True, **limit)
        except ResponseError:
            raise
        except BaseException:
            self.disconnect()  # a reply may be on its way, and would answer the next question
            raise
        self._told = b""
        return reply

    def tell(self, command: bytes, token: bytes, seconds: float, timeout: float | None = None) -> int | None:
        """Send what has no reply, then `await_number`. `timeout`: seconds to connect."""
        self._told = b""
        try:
            if not self._open:
                self._connect_within(timeout)
            self._connection.send_packed_command((command,), False)
        except BaseException:
            self.disconnect()
            raise
        return self.await_number(token, seconds)

    def _connect_within(self, timeout: float | None) -> None:
        connection = self._connection
        usual = connection.socket_connect_timeout
        limit = self._timeout if timeout is None else min(timeout, self._timeout)
        connection.socket_connect_timeout = connection.socket_timeout = limit
        try:
            connection.connect()
        finally:
            connection.socket_connect_timeout, connection.socket_timeout = usual, self._timeout

    def await_number(self, token: bytes, seconds: float) -> int | None:
        """Wait until the lock is handed to `token` and return its fencing number; None when it was not in time.
        Raises ResponseError when the server refused what was told to it."""
        until = time.monotonic() + seconds
        read = self._connection.read_response
        try:
            while not self._told.startswith(token):  # a token is as long as any other of its lock
                left = until - time.monotonic()
                if left <= 0:
                    return None
                read(push_request=True, timeout=left, disconnect_on_error=False)
        except RedisTimeoutError:
            return None
        except BaseException:
            self.disconnect()
            raise
        return int(self._told[len(token) :])

    def disconnect(self) -> None:
        """The server then takes this wire's waiter for dead."""
        self._open = False
        self._connection.disconnect()
