"""A Django project of one model, on the database that WALLET_DATABASE says in JSON. Scripts put it on trial."""

from __future__ import annotations

import json
import os

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": json.loads(os.environ["WALLET_DATABASE"])},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()

from django.db import connection, models, transaction  # noqa: E402


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


@transaction.atomic
def withdraw_locked(amount: int) -> None:
    wallet = Wallet.objects.select_for_update().get(id=1)
    wallet.balance -= amount
    wallet.save()
