"""Violated: a payment is gone, because `save()` writes every field, also those that somebody else has changed.

A clerk opens a customer in the admin, corrects the name and saves. Meanwhile a payment raises the balance by a right
and atomic UPDATE. The clerk's object still holds the old balance, and `save()` writes it back.

    clerk                                payment
    get → Anne, 100
                                         balance = balance + 50 → 150
    save: name Ann, balance 100

Mended: `save(update_fields=["name"])`; or the row is locked while the clerk's request lasts.
"""

from __future__ import annotations

from django.db import models, transaction
from django.db.models import F

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form


class Client(models.Model):
    name = models.CharField(max_length=20)
    balance = models.IntegerField()


def one_client():
    Client.objects.create(name="Anne", balance=100)


def pay():
    Client.objects.filter(pk=1).update(balance=F("balance") + 50)


def rename():
    client = Client.objects.get(pk=1)
    client.name = "Ann"
    client.save()


def rename_only():
    client = Client.objects.get(pk=1)
    client.name = "Ann"
    client.save(update_fields=["name"])


def rename_locked():
    with transaction.atomic():
        client = Client.objects.select_for_update().get(pk=1)
        client.name = "Ann"
        client.save()


def beside_a_payment(operation):
    return [worker("clerk", operation), worker("payment", pay)]


CASE = Case(
    source="mozilla/addons#9094",
    setup=one_client,
    invariant=(lambda clerk, payment: Client.objects.get().balance == 150, "the payment is gone"),
    broken=[Form(name="save()", workers=beside_a_payment(rename), verdict=VIOLATED)],
    mended=[
        Form(name="update_fields", workers=beside_a_payment(rename_only)),
        Form(name="lock before read", workers=beside_a_payment(rename_locked)),
    ],
    cure="lock before read",
)
