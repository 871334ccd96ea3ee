"""Violated: a withdrawal is lost though withdrawals take the lock, because the interest job takes none.

A lock protects a row from those who ask for it. The team locks in the service that everybody uses. Years later a
nightly command adds interest: it reads, computes and saves, and knows nothing of the lock.

    withdrawal                           interest
                                         get → 100
    FOR UPDATE → 100
    save 20, commit
                                         save 100 + 10: the withdrawal is gone

Mended: the job takes the lock too; or the database computes.
"""

from __future__ import annotations

from django.db import models, transaction
from django.db.models import F

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form


class Savings(models.Model):
    balance = models.IntegerField()


def one_account():
    Savings.objects.create(balance=100)


def withdraw():
    with transaction.atomic():
        savings = Savings.objects.select_for_update().get(pk=1)
        savings.balance -= 80
        savings.save()


def interest():
    savings = Savings.objects.get(pk=1)
    savings.balance += 10
    savings.save()


def interest_locked():
    with transaction.atomic():
        savings = Savings.objects.select_for_update().get(pk=1)
        savings.balance += 10
        savings.save()


def interest_in_place():
    Savings.objects.filter(pk=1).update(balance=F("balance") + 10)


def beside_a_withdrawal(operation):
    return [worker("withdrawal", withdraw), worker("interest", operation)]


CASE = Case(
    source="killbill/killbill#282; ad hoc transactions (Tang et al., SIGMOD 2022)",
    setup=one_account,
    invariant=(
        lambda one, other: Savings.objects.get().balance == 30,
        "the withdrawal or the interest is gone",
    ),
    broken=[Form(name="the job takes no lock", workers=beside_a_withdrawal(interest), verdict=VIOLATED)],
    mended=[
        Form(name="the job takes the lock too", workers=beside_a_withdrawal(interest_locked)),
        Form(name="the database computes", workers=beside_a_withdrawal(interest_in_place)),
    ],
    cure="lock before read",
)
