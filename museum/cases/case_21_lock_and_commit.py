"""Violated, and stalled: a Redis lock is released before the COMMIT, or never.

The lock is taken inside the transaction, so it is released before the COMMIT, and the next holder reads the old
balance. So the release was moved into `on_commit`. But a transaction that rolls back never commits, so `on_commit`
never runs: after the first refused withdrawal the lock is held for ever.

    Ann                                  Bob
    lock; read 100; write 20; unlock
                                         lock; read 100: Ann has not committed
    commit
                                         write 20, commit

Mended: the lock is outside, the transaction inside.
"""

from __future__ import annotations

from django.db import models, transaction

from lost_update_lab import worker
from museum.case import STALLED, VIOLATED, Case, Form
from museum.outside import client


class Till(models.Model):
    balance = models.IntegerField()


class NotEnough(Exception):
    """The till has less than is asked for."""


def one_till():
    Till.objects.create(balance=100)


def take(amount):
    till = Till.objects.get(pk=1)
    if till.balance < amount:
        raise NotEnough
    till.balance -= amount
    till.save()


def lock_inside(amount):
    with transaction.atomic(), client().lock("till"):
        take(amount)


def lock_until_on_commit(amount):
    lock = client().lock("till")
    with transaction.atomic():
        lock.acquire()
        transaction.on_commit(lock.release)
        take(amount)


def lock_outside(amount):
    with client().lock("till"), transaction.atomic():
        take(amount)


def two(operation, amount, other):
    return [worker("Ann", operation, amount), worker("Bob", operation, other)]


CASE = Case(
    source="redisson/redisson#2183; ad hoc transactions (Tang et al., SIGMOD 2022)",
    setup=one_till,
    invariant=(lambda ann, bob: Till.objects.get().balance == 50, "a withdrawal is gone"),
    broken=[
        Form(name="released before the commit", workers=two(lock_inside, 20, 30), verdict=VIOLATED),
        Form(
            name="released in on_commit",
            workers=two(lock_until_on_commit, 500, 50),
            invariant=(lambda: Till.objects.get().balance >= 0, "the till is below zero"),
            verdict=STALLED,
            refusals=[NotEnough],
            untimed="it hangs",
        ),
    ],
    mended=[
        Form(name="lock outside", workers=two(lock_outside, 20, 30)),
        Form(
            name="lock outside, and one is refused",
            workers=two(lock_outside, 500, 50),
            mends="released in on_commit",
            refusals=[NotEnough],
        ),
    ],
    cure="lock before read",
)
