"""A Django project that nobody names, as a script: explore() finds it. Prints the verdicts."""

from __future__ import annotations

import os

import tests.lost_update_lab.wallet as project
from lost_update_lab import Mistake, explore, worker

WORKERS = [worker("Ann", project.withdraw_locked, 10), worker("Bob", project.withdraw_locked, 20)]


def tried(**where: object) -> str:
    try:
        result = explore(WORKERS, setup=project.open_wallet, disposable=True, lost_replies=1, **where)  # type: ignore[arg-type]
    except Mistake as mistake:
        return str(mistake)
    return f"{result.verdict} {result.exhausted}"


given = project.django.db.connection.get_connection_params()
same = f"postgresql://{given['user']}@/{given['dbname']}?host={given['host']}"
os.environ.pop("DATABASE_URL", None)  # of the tests around it
print("nothing is said:", tried())
print("its database:", tried(database=same))
print("another database:", tried(django=False))
project.connection.cursor().execute("DROP TABLE wallet_wallet")  # nobody has put it back
import pytest  # noqa: E402, F401  (the environment says already which test runs)

print("a test without a mark:", tried())
project.connection.cursor().execute("DROP TABLE wallet_wallet")
