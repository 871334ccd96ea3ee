"""Violated: a withdrawal is lost under FOR UPDATE, because the lock ends before the write begins.

A row lock lasts as long as its transaction. Here the transaction is the SELECT alone: `atomic` closes right after it,
and the decision and the write come later. In the second form the lock is never taken at all: a queryset is lazy, and
nobody evaluates it.

    Ann                                  Bob
    begin, FOR UPDATE → 100, commit
                                         begin, FOR UPDATE → 100, commit
    100 − 80: save 20
                                         100 − 80: save 20: 160 went out

Mended: the read, the decision and the write are inside of one `atomic`.
"""

from __future__ import annotations

from django.db import models, transaction

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form


class Purse(models.Model):
    balance = models.IntegerField()


class Payout(models.Model):
    amount = models.IntegerField()


def one_purse():
    Purse.objects.create(balance=100)


def withdraw(amount):
    with transaction.atomic():
        purse = Purse.objects.select_for_update().get(pk=1)
    if purse.balance < amount:
        return "not enough"
    purse.balance -= amount
    purse.save()
    Payout.objects.create(amount=amount)
    return "paid out"


def withdraw_lazily(amount):
    with transaction.atomic():
        Purse.objects.select_for_update().filter(pk=1)
        purse = Purse.objects.get(pk=1)
        if purse.balance < amount:
            return "not enough"
        purse.balance -= amount
        purse.save()
        Payout.objects.create(amount=amount)
    return "paid out"


def withdraw_inside(amount):
    with transaction.atomic():
        purse = Purse.objects.select_for_update().get(pk=1)
        if purse.balance < amount:
            return "not enough"
        purse.balance -= amount
        purse.save()
        Payout.objects.create(amount=amount)
    return "paid out"


def two(operation):
    return [worker("Ann", operation, 80), worker("Bob", operation, 80)]


CASE = Case(
    source="uktrade/tamato#1385 (the lazy queryset)",
    setup=one_purse,
    invariant=(lambda: Payout.objects.count() <= 1, "a purse of 100 has paid out 160"),
    broken=[
        Form(name="atomic ends too early", workers=two(withdraw), verdict=VIOLATED),
        Form(name="a queryset that nobody evaluates", workers=two(withdraw_lazily), verdict=VIOLATED),
    ],
    mended=[Form(name="all in one atomic", workers=two(withdraw_inside), faults={"crashes": 1})],
    cure="lock before read",
)
