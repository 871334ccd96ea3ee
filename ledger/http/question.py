"""A question to a server that may be up, and say nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from django.db import connection

#: seconds after which a silent server counts as away
PATIENCE = 3.0
Answer = TypeVar("Answer")


class ServerQuestion(Generic[Answer]):
    """Asks one server, in a thread of its own, one question at a time. Otherwise a server that is up but silent would
    take the web's threads one by one."""

    def __init__(self, ask: Callable[[], Answer]) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._future: Future[Answer] | None = None

    def begun(self) -> Future[Answer]:
        """Return the question that is under way, or ask a new one. Its result(PATIENCE) raises TimeoutError, or what
        the asking raised."""
        with self._lock:
            if self._future is None or self._future.done():
                self._future = Future()
                threading.Thread(target=self._run, args=(self._future,), daemon=True).start()
            return self._future

    def _run(self, future: Future[Answer]) -> None:
        try:
            answer = self._ask()
        except Exception as error:  # noqa: BLE001  (the one that asked hears of it)
            future.set_exception(error)
        else:
            future.set_result(answer)
        finally:
            connection.close()  # this thread's own, if it asked the database
