"""A wire: one connection of a Redis client, which listens on its own channel.

The client's pool says how to connect (TCP, unix socket, TLS, password, sentinels), but the wire stays outside the
pool: a checkout costs more than the command itself, and a waiter must not use up the connections that the work inside
the lock needs. A wire speaks RESP3, in which replies and messages share one connection. It never re-sends by itself.
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

PATIENCE = 5.0  # seconds for a reply, if the client itself would wait for ever


class Wire:
    """Used by one thread at a time. Raises redis-py's errors. Reconnects at its next use after an error."""

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
        self._told = b""  # the last hand-over message: `token number`

    def _listen(self, connection: Any) -> None:
        """Subscribe, before anything is queued: a waiter that PUBLISH does not reach counts as dead."""
        try:
            connection._parser.set_pubsub_push_handler(self._heard)
            connection.send_command("SUBSCRIBE", self.channel, check_health=False)
            connection.read_response(push_request=True)
        except BaseException:
            connection.disconnect()  # or it would be used later without its subscription
            raise
        self._open = True

    def _heard(self, message: list[Any]) -> Any:
        """redis-py calls this for each message. `read_response` returns what this returns."""
        if message[0] == b"message":
            self._told = message[2]
        return message

    def new_word(self, questions: Questions) -> bytes:
        """Return a new packed token."""
        self._attempts += 1
        return questions.word % (self.channel, self._attempts)

    def ask(self, question: Question, word: bytes, timeout: float | None = None) -> Any:
        """Make one round trip and return the reply. If the server forgot the script, make one more.

        `word`: the question's last word, `packed`. `timeout`: seconds, if shorter than the client's own.
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
            while isinstance(reply, list):  # a message from before the reply; the reply is newer
                reply = connection.read_response(push_request=True, **limit)
        except ResponseError:
            raise
        except BaseException:
            self.disconnect()  # a reply may be on its way, and would be taken for that of the next question
            raise
        self._told = b""
        return reply

    def tell(self, command: bytes, token: bytes, seconds: float, timeout: float | None = None) -> int | None:
        """Send a command that has no reply, then `await_number`. `timeout`: seconds to connect."""
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
        """Wait until the lock is handed to `token`, and return its fencing number. None: not in time. Raises
        ResponseError if the server refused the quiet question."""
        until = time.monotonic() + seconds
        read = self._connection.read_response
        try:
            while not self._told.startswith(token):  # all tokens of a lock have the same length
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
        """Close the connection. The server then counts this wire's waiter as dead."""

        self._open = False
        self._connection.disconnect()
