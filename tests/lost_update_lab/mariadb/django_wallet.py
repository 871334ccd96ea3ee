"""A Django project on MariaDB, as a script: a wallet's withdrawal, broken and mended. Prints the verdicts."""

from __future__ import annotations

import pymysql

pymysql.install_as_MySQLdb()

from django.db import transaction  # noqa: E402

from lost_update_lab import explore, worker  # noqa: E402
from tests.lost_update_lab.wallet import Wallet, open_wallet  # noqa: E402


def withdraw(amount: int) -> str:
    wallet = Wallet.objects.get(id=1)
    if wallet.balance < amount:
        return "refused"
    wallet.balance -= amount
    wallet.save()
    return "paid"


@transaction.atomic
def withdraw_locked(amount: int) -> str:
    wallet = Wallet.objects.select_for_update().get(id=1)
    if wallet.balance < amount:
        return "refused"
    wallet.balance -= amount
    wallet.save()
    return "paid"


for each in (withdraw, withdraw_locked):
    both = [worker("Ann", each, 60), worker("Bob", each, 60)]
    print(each.__name__, explore(both, setup=open_wallet, django=True, crashes=1).verdict)
