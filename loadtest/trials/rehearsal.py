"""A stranger's lock, taken and released once by one caller alone, before a run of minutes is spent on it.

    one caller:  lock("book:A0001") → acquired → released      whoever cannot do this fails in every trial the same way

In a trial such a lock comes to "no operation was acknowledged", behind HTTP and thousands of errors; here its own words
are at hand. A lock that only waits (for longer than PATIENCE) is no error: the trial has a word for it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from threading import Thread

from django.db import connections

from ledger.books import open_book
from ledger.strategies import Locked, find
from loadtest.trials.availability import missing
from loadtest.trials.trial import Trial

ACCOUNT = "A0001"
#: seconds until a lock that nobody holds is left to the trial
PATIENCE = 10.0


class NotTaken(Exception):
    """The lock raised, though nobody else wanted it: in its own words."""


def rehearse(trial: Trial) -> str:
    """Take the lock of `trial` once, on a scratch book, with its settings, and let go of it. Returns what is to be told
    of the release, which spoils no posting that is committed. Nothing to do for who is no stranger, or cannot be tried
    here. Raises NotTaken."""
    if ":" not in trial.strategy or missing(trial.strategy, trial.store):
        return ""
    book = open_book(
        trial.strategy,
        [(ACCOUNT, 0, None)],
        store=trial.store,
        name="rehearsal",
        values=dict(trial.settings),
        trusted=True,
    )
    raised: list[BaseException] = []
    warnings: list[str] = []

    def take() -> None:
        try:
            subject = find(trial.strategy)(book)
            assert isinstance(subject, Locked)
            lock = subject.take(ACCOUNT)
            if not isinstance(lock, AbstractContextManager):
                raise TypeError(f"a {type(lock).__name__} has no __exit__")
            warnings.append(subject.leave([lock], None))
        except BaseException as error:  # noqa: BLE001  (a stranger's lock may raise anything, SystemExit too)
            raised.append(error)
        finally:
            connections.close_all()

    thread = Thread(target=take, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    for error in raised:
        raise NotTaken(
            f"{trial.strategy} cannot be taken, even by one caller alone: {type(error).__name__}: {error}\n"
            "A lock is a callable that takes a name (and redis, lease, poll …, if it names them) and returns a "
            "context manager: docs/tour/10-your-own-lock.md says what each of these is."
        ) from error
    return (
        f"{trial.strategy}: its release fails, even of one caller alone: {warnings[0]}"
        if any(warnings)
        else ""
    )
