"""Operations that close their connection, as Celery's tasks and long-running commands do, as a script. Prints the
verdicts."""

from __future__ import annotations

from django.db import close_old_connections, connection

import tests.lost_update_lab.wallet as project
from lost_update_lab import explore, worker

for age in (0, 60):
    connection.settings_dict["CONN_MAX_AGE"] = age

    def task(amount: int) -> None:
        close_old_connections()
        project.withdraw_locked(amount)
        close_old_connections()
        project.Wallet.objects.count()
        connection.close()

    workers = [worker("Ann", task, 10), worker("Bob", task, 20)]
    result = explore(
        workers, setup=project.open_wallet, django=True, disposable=True, crashes=1, control=False
    )
    print(age, result.verdict, result.exhausted, result.cause)
