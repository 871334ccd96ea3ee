"""One caller of a race: a thread, its own database connection, one posting."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Any, Self

from django.db import connections

from ledger.models import Book
from ledger.posting import Applied, Posting
from ledger.strategies import find
from tests.ledger.race.sessions import PAUSE, end_session, is_blocked, session_of

PATIENCE = 60.0
#: `here.worker`: the worker of this thread
here = threading.local()


class Killed(BaseException):
    """What a crashed worker sees at its next command: not caught by `except Exception`."""


class State(StrEnum):
    RUNS = "runs"
    STOPPED = "stopped"  # at the point where the test wants it
    WAITS = "waits"  # for a lock, in a database or by polling
    DONE = "done"


class Worker:
    """Runs only when the test says so, to the point that the test names."""

    def __init__(self, book: Book, name: str, posting: Posting) -> None:
        self.name, self.posting = name, posting
        self.strategy = find(book.strategy)(book)
        self.strategy.think = lambda: self.passes("think")  # type: ignore[method-assign]
        self.alias = "mariadb" if book.store == "mariadb" else "default"
        self.answer: Applied | None = None
        self.error: BaseException | None = None
        self.session: int | None = None
        self.started = self.ended = 0.0
        self.dead = False
        self._stop_at: re.Pattern[str] | None = None
        self._changed = threading.Condition()
        self._state = State.RUNS
        self._polls = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    # -- what a test says ---------------------------------------------------------------------------------

    def runs_to(self, point: str) -> Self:
        """Run to `point`. Fails when the worker ends or waits before it gets there."""
        state = self.tries(point)
        assert state is State.STOPPED, f"{self.name} never came to {point!r}: {state}, {self.error!r}"
        return self

    def waits(self) -> Self:
        """Run until it waits for another worker. Fails when it gets as far as its think time."""
        state = self.tries("think")
        assert state is State.WAITS, f"{self.name} did not have to wait: {state}, {self.error!r}"
        return self

    def tries(self, point: str = "think") -> State:
        """Run towards `point`; return how far it got."""
        self._go(re.compile(point, re.DOTALL))
        return self._comes_to_rest(State.STOPPED, State.WAITS, State.DONE)

    def gets_there(self) -> Self:
        """It waited, and nothing blocks it now: run on to the point to which it was sent."""
        self._comes_to_rest(State.STOPPED)
        return self

    def finishes(self) -> Applied:
        """Run to the end and return the answer; raises what the strategy raised."""
        self._go(None)
        self._comes_to_rest(State.DONE)
        if self.error is not None:
            raise self.error
        assert self.answer is not None
        return self.answer

    def fails(self, *kinds: type[BaseException]) -> BaseException:
        """Run to the end, which must be one of these errors."""
        self._go(None)
        self._comes_to_rest(State.DONE)
        assert isinstance(self.error, kinds), f"{self.name}: {self.error!r} is none of {kinds}"
        return self.error

    def dies(self) -> None:
        """SIGKILL as its servers see it: its session ends, and no later command of it reaches any server."""
        self.dead = True
        end_session(self.alias, self.session)
        self._go(None)
        self._comes_to_rest(State.DONE)

    @property
    def lives(self) -> bool:
        return self._thread.is_alive()

    # -- what its thread does -----------------------------------------------------------------------------

    def passes(self, point: str) -> None:
        """Called by its thread at every point; stops there when the test wants that."""
        if not self.dead and self._stop_at is not None and self._stop_at.match(point):
            with self._changed:
                self._stop_at = None
                self._set(State.STOPPED)
                self._changed.wait_for(lambda: self._state is not State.STOPPED)
        if self.dead:
            raise Killed(point)

    def sleeps(self, seconds: float, sleep: Callable[[float], None]) -> None:
        self.passes("sleep")
        with self._changed:
            self._polls += 1
            self._changed.notify_all()
        sleep(min(seconds, 0.005))  # the published poll of one second proves no more than a short one

    def _run(self) -> None:
        here.worker = self
        connection = connections[self.alias]
        try:
            connection.ensure_connection()
            self.session = session_of(connection)
            with connection.execute_wrapper(self._at_statement):
                self.answer = self.strategy.apply(self.posting)
        except BaseException as error:  # noqa: BLE001  (handed to the test)
            self.error = error
        finally:
            self.ended = time.time()
            connections.close_all()
            with self._changed:
                self._set(State.DONE)

    def _at_statement(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.passes(f"sql {sql}")
        return execute(sql, params, many, context)

    # -- waiting for it -----------------------------------------------------------------------------------

    def _go(self, stop_at: re.Pattern[str] | None) -> None:
        with self._changed:
            self._stop_at, self._polls = stop_at, 0
            if not self.started:
                self.started = time.time()
                self._thread.start()
            elif self._state is State.STOPPED:
                self._set(State.RUNS)

    def _comes_to_rest(self, *states: State) -> State:
        """Wait until it is in one of `states`. Waiting: it has asked, slept, asked and slept again, or its
        database says that it is blocked."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with self._changed:
                self._changed.wait_for(lambda: self._state in states, PAUSE[self.alias])
                if self._state in states:
                    return self._state
                polling = self._polls >= 2
            if State.WAITS in states and (polling or is_blocked(self.alias, self.session)):
                return State.WAITS
        raise AssertionError(f"{self.name} did not come to {states} in {PATIENCE:g} s: {self._state}")

    def _set(self, state: State) -> None:
        self._state = state
        self._changed.notify_all()
