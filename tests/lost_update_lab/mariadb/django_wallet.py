"""A Django project on MariaDB, as a script: a wallet's withdrawal, broken and mended. Prints the verdicts."""

from __future__ import annotations

import os

import django
import pymysql
from django.conf import settings

pymysql.install_as_MySQLdb()
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.mysql",
            "NAME": "wallet_test",
            "USER": "lab",
            "OPTIONS": {"unix_socket": os.environ["MARIADB_SOCKET"], "ssl_disabled": True},
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()

from django.db import connection, models, transaction  # noqa: E402

from lost_update_lab import explore, worker  # noqa: E402


class Wallet(models.Model):
    balance = models.IntegerField()

    class Meta:
        app_label = "wallet"

    def __str__(self) -> str:
        return str(self.balance)


def opens() -> None:
    with connection.schema_editor() as editor:
        editor.create_model(Wallet)
    Wallet.objects.create(id=1, balance=100)


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
    print(each.__name__, explore(both, setup=opens, django=True, crashes=1).verdict)
