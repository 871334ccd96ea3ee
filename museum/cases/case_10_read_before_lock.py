"""Violated: a withdrawal is lost under FOR UPDATE, because the object was read before the lock was taken.

The view loads the account, as every view does. The service then takes the lock properly, inside of `atomic`, and goes
on with the object that the view has handed in. The lock makes it wait; what it knows is from before the wait.

    Ann                                  Bob
    get → 100
                                         get → 100
    FOR UPDATE; 100 − 30: save 70
                                         FOR UPDATE (waits); 100 − 50: save 50

Mended: use what the locked SELECT returns, or `refresh_from_db()` behind the lock.
"""

from __future__ import annotations

from django.db import models, transaction

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form


class Pocket(models.Model):
    balance = models.IntegerField()


def one_pocket():
    Pocket.objects.create(balance=100)


def withdraw(amount):
    pocket = Pocket.objects.get(pk=1)
    with transaction.atomic():
        Pocket.objects.select_for_update().get(pk=pocket.pk)
        pocket.balance -= amount
        pocket.save()


def withdraw_refreshed(amount):
    pocket = Pocket.objects.get(pk=1)
    with transaction.atomic():
        Pocket.objects.select_for_update().get(pk=pocket.pk)
        pocket.refresh_from_db()
        pocket.balance -= amount
        pocket.save()


def withdraw_what_is_locked(amount):
    with transaction.atomic():
        pocket = Pocket.objects.select_for_update().get(pk=1)
        pocket.balance -= amount
        pocket.save()


def two(operation):
    return [worker("Ann", operation, 30), worker("Bob", operation, 50)]


CASE = Case(
    source="sqlalchemy/sqlalchemy#4774",
    setup=one_pocket,
    invariant=(lambda ann, bob: Pocket.objects.get().balance == 20, "a withdrawal is gone"),
    broken=[Form(name="read, then lock", workers=two(withdraw), verdict=VIOLATED)],
    mended=[
        Form(name="refresh behind the lock", workers=two(withdraw_refreshed)),
        Form(name="use what is locked", workers=two(withdraw_what_is_locked)),
    ],
    cure="lock before read",
)
