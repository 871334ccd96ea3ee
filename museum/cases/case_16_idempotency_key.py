"""Violated: a deposit is made twice, or never, because its idempotency key is stored at another time than the deposit.

A client that hears nothing sends its request again, with the same key. The server has to do it once. Three orders of
the two writes are tried, and two of them are wrong in ways of their own.

    request                              the same again
    is the key known? no
                                         is the key known? no
    deposit, store the key
                                         deposit: twice

Stored after the deposit, in a transaction of its own, the key comes too late even for one who waits for the row.
Stored before it, a crash in between leaves a key without a deposit: the client is told "done", and nothing was done.

Mended: the key and the deposit in one transaction, and the key under a constraint.
"""

from __future__ import annotations

from django.db import IntegrityError, models, transaction
from django.db.models import F

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form


class Balance(models.Model):
    amount = models.IntegerField(default=0)


class Key(models.Model):
    key = models.CharField(max_length=20)


class UniqueKey(models.Model):
    key = models.CharField(max_length=20, unique=True)


def nothing_yet():
    Balance.objects.create()


def deposit():
    Balance.objects.filter(pk=1).update(amount=F("amount") + 10)


def check_then_act(key):
    if not Key.objects.filter(key=key).exists():
        with transaction.atomic():
            deposit()
            Key.objects.create(key=key)
    return "done"


def key_after(key):
    with transaction.atomic():
        Balance.objects.select_for_update().get(pk=1)
        if Key.objects.filter(key=key).exists():
            return "done"
        deposit()
    Key.objects.create(key=key)
    return "done"


def key_before(key):
    try:
        UniqueKey.objects.create(key=key)
    except IntegrityError:
        return "done"
    deposit()
    return "done"


def key_with_it(key):
    try:
        with transaction.atomic():
            UniqueKey.objects.create(key=key)
            deposit()
    except IntegrityError:
        pass
    return "done"


def twice(operation):
    return [worker("request", operation, "k1"), worker("the same again", operation, "k1")]


def once(request, again):
    made = Balance.objects.get().amount
    return made == 10 if "done" in (request, again) else made <= 10


CASE = Case(
    source="furthemore/APIS#193",
    setup=nothing_yet,
    invariant=(once, "one request, and its deposit was not made just once"),
    broken=[
        Form(name="check, then act", workers=twice(check_then_act), verdict=VIOLATED),
        Form(name="key stored after", workers=twice(key_after), verdict=VIOLATED),
        Form(
            name="key stored before",
            workers=twice(key_before),
            faults={"crashes": 1},
            needs="crash",
            verdict=VIOLATED,
        ),
    ],
    mended=[Form(name="key in the same transaction", workers=twice(key_with_it), faults={"crashes": 1})],
    cure="key in the same transaction",
)
