"""A Django operation that connects again after a fault, as a script. Prints the verdict, and how many sessions the
search has made."""

from __future__ import annotations

from django.db import OperationalError, connection

import tests.lost_update_lab.wallet as project
from lost_update_lab import explore, worker

MADE = "SELECT sessions FROM pg_stat_database WHERE datname = current_database()"


def insists(amount: int) -> None:
    """It withdraws twice if only the reply to its COMMIT was lost."""
    try:
        project.withdraw_locked(amount)
    except OperationalError:
        project.withdraw_locked(amount)


def made() -> int:
    with connection.cursor() as cursor:
        cursor.execute(MADE)
        (count,) = cursor.fetchone()
    return int(count)


for name, operation in (("locked", project.withdraw_locked), ("insists", insists)):
    before = made()
    workers = [worker("Ann", operation, 10), worker("Bob", operation, 20)]
    result = explore(
        workers,
        setup=project.open_wallet,
        invariant=lambda: project.Wallet.objects.get(id=1).balance >= 70,
        django=True,
        disposable=True,
        lost_replies=1,
        crashes=1,
        faults=2,
        control=False,
    )
    print(name, result.verdict, result.exhausted, made() - before)
