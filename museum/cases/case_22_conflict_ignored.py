"""Violated: a deposit that was acknowledged is gone, because nobody looks at how many rows the UPDATE has changed.

The optimistic lock works: the second UPDATE finds another version and changes nothing. But it raises nothing either. It
returns 0, the caller throws the 0 away, and the customer reads "booked".

    Ann                                  Bob
    get → 100, version 1
                                         get → 100, version 1
    update where version = 1 → 1 row
                                         update where version = 1 → 0 rows: "booked"

Mended: 0 rows mean "again, from the read on".
"""

from __future__ import annotations

from django.db import models

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form


class Versioned(models.Model):
    balance = models.IntegerField()
    version = models.IntegerField(default=1)


def one_account():
    Versioned.objects.create(balance=100)


def book(amount):
    account = Versioned.objects.get(pk=1)
    Versioned.objects.filter(pk=1, version=account.version).update(
        balance=account.balance + amount, version=account.version + 1
    )
    return "booked"


def book_again_on_conflict(amount):
    for _ in range(5):
        account = Versioned.objects.get(pk=1)
        if Versioned.objects.filter(pk=1, version=account.version).update(
            balance=account.balance + amount, version=account.version + 1
        ):
            return "booked"
    raise RuntimeError("too much is going on: try again later")


def two(operation):
    return [worker("Ann", operation, 10), worker("Bob", operation, 20)]


def what_was_acknowledged(ann, bob):
    told = [amount for result, amount in ((ann, 10), (bob, 20)) if result == "booked"]
    return Versioned.objects.get().balance >= 100 + sum(told)


CASE = Case(
    source="MakePrisms/agicash#571; ad hoc transactions (Tang et al., SIGMOD 2022)",
    setup=one_account,
    invariant=(what_was_acknowledged, "a deposit that was acknowledged is gone"),
    broken=[Form(name="the row count is ignored", workers=two(book), verdict=VIOLATED)],
    mended=[Form(name="again on a conflict", workers=two(book_again_on_conflict), faults={"crashes": 1})],
    cure="retry the whole transaction",
)
