"""Violated: an account is overdrawn, because its balance is checked on a replica that lags.

Reads go to the replica, to spare the primary. A balance check is a read. The withdrawal itself is right, an atomic
UPDATE on the primary; but whether it may happen was decided by a copy from some time ago.

    Ann                                  Bob                               replication
    replica: 100
    primary: 100 − 80 → 20
                                         replica: still 100
                                         primary: 20 − 80 → −60
                                                                           copies −60

To its reader a replica is a copy that somebody else brings up to date later. Here the copy is a row of its own, and a
third worker brings it up to date. Replication that comes last is a serial order too, so the default invariant takes the
overdraft for right. What it finds is a copy that stays behind.

Mended: the check is part of the UPDATE, on the primary.
"""

from __future__ import annotations

from django.db import models
from django.db.models import F

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form


class Primary(models.Model):
    balance = models.IntegerField()


class Replica(models.Model):
    balance = models.IntegerField()


def one_account():
    Primary.objects.create(balance=100)
    Replica.objects.create(balance=100)


def replicate():
    Replica.objects.filter(pk=1).update(balance=Primary.objects.get(pk=1).balance)


def withdraw(amount):
    if Replica.objects.get(pk=1).balance < amount:
        return "not enough"
    Primary.objects.filter(pk=1).update(balance=F("balance") - amount)
    return "paid out"


def withdraw_on_primary(amount):
    if not Primary.objects.filter(pk=1, balance__gte=amount).update(balance=F("balance") - amount):
        return "not enough"
    return "paid out"


def three(operation):
    return [worker("Ann", operation, 80), worker("Bob", operation, 80), worker("replication", replicate)]


CASE = Case(
    source="Kilo-Org/cloud#4972 (the lag is accepted there, and told)",
    setup=one_account,
    invariant=(lambda: Primary.objects.get().balance >= 0, "the account is overdrawn"),
    broken=[Form(name="check on the replica", workers=three(withdraw), verdict=VIOLATED)],
    mended=[Form(name="conditional UPDATE on the primary", workers=three(withdraw_on_primary))],
    cure="conditional UPDATE",
)
