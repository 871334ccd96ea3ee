"""A wallet in Django, and its asynchronous ORM: executed by a test in a process of its own."""

from __future__ import annotations

import os

import django
from django.conf import settings

settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": os.environ["PGDATABASE"],
            "USER": os.environ["PGUSER"],
            "HOST": os.environ["PGHOST"],
        }
    },
    INSTALLED_APPS=[],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()

from django.db import connection, models  # noqa: E402
from django.db.models import F  # noqa: E402

from lost_update_lab import explore, worker  # noqa: E402


class Wallet(models.Model):
    balance = models.IntegerField()

    class Meta:
        app_label = "wallet"

    def __str__(self) -> str:
        return str(self.balance)


def open_wallet() -> None:
    with connection.schema_editor() as editor:
        editor.create_model(Wallet)
    Wallet.objects.create(id=1, balance=100)
    connection.close()


async def withdraw(amount: int) -> int:
    wallet = await Wallet.objects.aget(id=1)
    wallet.balance -= amount
    await wallet.asave()
    return amount


async def withdraw_in_place(amount: int) -> int:
    await Wallet.objects.filter(id=1).aupdate(balance=F("balance") - amount)
    return amount


if __name__ == "__main__":
    for operation in (withdraw, withdraw_in_place):
        workers = [worker("Ann", operation, 10), worker("Bob", operation, 20)]
        result = explore(workers, setup=open_wallet, django=True, disposable=True)
        print(operation.__name__, result.verdict, result.exhausted)
