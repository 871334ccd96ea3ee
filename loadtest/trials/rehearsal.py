"""A rehearsal: one caller takes and releases a user's lock once, before a run of minutes is spent on it.

    one caller:  lock("book:A0001") → acquired → released      a lock that fails here fails in every trial

In a trial such a lock would end as "no operation was acknowledged", behind HTTP and thousands of errors. Here its own
message is at hand. A lock that just waits (longer than PATIENCE) is not an error: the trial has a word for it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from threading import Thread

from django.db import connections

from ledger.books import open_book
from ledger.strategies import Locked, find
from loadtest.trials.availability import missing
from loadtest.trials.case import TrialCase

ACCOUNT = "A0001"
#: seconds to wait for a lock that is free, before it is left to the trial
PATIENCE = 10.0


class NotTaken(Exception):
    """The lock raised although no other caller wanted it. The message is its own."""


def rehearse(case: TrialCase) -> str:
    """Take and release the lock of `case` once, on a scratch book, with the settings of the case. Return a warning if
    the release fails (which spoils no committed posting), else "". Does nothing for the lab's own strategies, or for a
    case that cannot be tried here. Raises NotTaken."""
    if ":" not in case.strategy or missing(case.strategy, case.store):
        return ""
    book = open_book(
        case.strategy,
        [(ACCOUNT, 0, None)],
        store=case.store,
        name="rehearsal",
        values=dict(case.settings),
        trusted=True,
    )
    raised: list[BaseException] = []
    warnings: list[str] = []

    def take() -> None:
        try:
            subject = find(case.strategy)(book)
            assert isinstance(subject, Locked)
            around = subject.store.open_blocks()
            lock = subject.take(ACCOUNT)
            if not isinstance(lock, AbstractContextManager):
                raise TypeError(f"a {type(lock).__name__} has no __exit__")
            warnings.append(subject.leave([lock], None, around))
        except BaseException as error:  # noqa: BLE001  (a user's lock may raise anything, even SystemExit)
            raised.append(error)
        finally:
            connections.close_all()

    thread = Thread(target=take, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    for error in raised:
        raise NotTaken(
            f"{case.strategy} cannot be taken, even by one caller alone: {type(error).__name__}: {error}\n"
            "A lock is a callable that takes a name (and redis, lease, poll …, if it names them) and returns a "
            "context manager: docs/tour/10-your-own-lock.md says what each of these is."
        ) from error
    return (
        f"{case.strategy}: its release fails, even for one caller alone: {warnings[0]}"
        if any(warnings)
        else ""
    )
