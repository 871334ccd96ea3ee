"""Violated: FOR UPDATE through a join locks rows that nobody meant, or leaves out those that matter.

`select_related` turns the query into a join, and FOR UPDATE locks the rows of every table in it. Shipping wants the
order, and gets the customer too. Loyalty takes the customer first and the order second: a deadlock between two jobs
that share no row in their authors' minds.

    shipping                             loyalty
                                         update the customer
    FOR UPDATE: locks the order,
    waits for the customer
                                         update the order: waits for shipping

`of=("self",)` locks the order alone. Where the money is on the joined row, it locks the wrong one.

Mended: `of=` names what is written, and nothing else.
"""

from __future__ import annotations

from django.db import models, transaction
from django.db.models import F

from lost_update_lab import worker
from lost_update_lab.invariants import succeeded
from museum.case import VIOLATED, Case, Form


class Buyer(models.Model):
    points = models.IntegerField(default=0)


class Purchase(models.Model):
    buyer = models.ForeignKey(Buyer, models.CASCADE)
    state = models.CharField(max_length=20, default="paid")
    credited = models.BooleanField(default=False)


def two_purchases():
    buyer = Buyer.objects.create()
    Purchase.objects.create(buyer=buyer)
    Purchase.objects.create(buyer=buyer)


def ship(of=()):
    with transaction.atomic():
        purchase = Purchase.objects.select_related("buyer").select_for_update(of=of).get(pk=1)
        purchase.state = "shipped"
        purchase.save(update_fields=["state"])


def credit():
    with transaction.atomic():
        Buyer.objects.filter(pk=1).update(points=F("points") + 10)
        Purchase.objects.filter(pk=1).update(credited=True)


def reward(pk, of):
    with transaction.atomic():
        purchase = Purchase.objects.select_related("buyer").select_for_update(of=of).get(pk=pk)
        purchase.buyer.points += 10
        purchase.buyer.save()


def shipping_and_loyalty(*of):
    return [worker("shipping", ship, of), worker("loyalty", credit)]


def two_rewards(*of):
    return [worker("first", reward, 1, of), worker("second", reward, 2, of)]


def nobody_was_aborted(one, other):
    return succeeded(one) and succeeded(other)


def all_points():
    return Buyer.objects.get().points in (0, 20)


CASE = Case(
    source="zulip/zulip#28489",
    setup=two_purchases,
    invariant=(nobody_was_aborted, "a job was aborted: deadlock"),
    broken=[
        Form(name="a join locks both", workers=shipping_and_loyalty(), verdict=VIOLATED),
        Form(
            name="of=self, and the money is on the other row",
            workers=two_rewards("self"),
            invariant=(all_points, "points are gone"),
            verdict=VIOLATED,
        ),
    ],
    mended=[
        Form(name="of=self", workers=shipping_and_loyalty("self")),
        Form(
            name="of= the row that is written",
            workers=two_rewards("buyer"),
            mends="of=self, and the money is on the other row",
            invariant=(all_points, "points are gone"),
        ),
    ],
    cure="one order",
)
