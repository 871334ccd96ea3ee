"""Violated: a card is charged twice, or never, because no transaction spans the shop and its payment provider.

The order's row is locked, the card is charged, the order is marked as paid. The worker dies before its COMMIT: the
database takes all back, the provider nothing. The customer tries again and pays again.

    first try                            second try
    FOR UPDATE → open
    charge 50
    (dies; the database rolls back)
                                         FOR UPDATE → open
                                         charge 50: twice

A reply that gets lost does the same without anybody dying. Who charges after the COMMIT instead turns the bug round:
the order is paid, and the card never charged.

Mended: the charge comes first and carries the provider's idempotency key, made of the order's number. A second try is
answered with the first one's charge. With the key no lock is needed. Or an outbox: what is to be charged is a row,
committed with the order, and a relay sends it until the provider has answered.
"""

from __future__ import annotations

from django.db import models, transaction

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form
from museum.outside import provider


class ShopOrder(models.Model):
    state = models.CharField(max_length=20, default="open")


def one_order():
    ShopOrder.objects.create()


def pay(key):
    with transaction.atomic():
        order = ShopOrder.objects.select_for_update().get(pk=1)
        if order.state == "open":
            provider.charge("A1", 50, key)
            order.state = "paid"
            order.save()


def pay_afterwards(key):
    with transaction.atomic():
        order = ShopOrder.objects.select_for_update().get(pk=1)
        if order.state != "open":
            return
        order.state = "paid"
        order.save()
    provider.charge("A1", 50, key)


class Outbox(models.Model):
    order = models.ForeignKey(ShopOrder, models.CASCADE)
    amount = models.IntegerField()
    sent = models.BooleanField(default=False)


def pay_with_key(key):
    order = ShopOrder.objects.get(pk=1)
    if order.state == "open":
        provider.charge("A1", 50, key)
        ShopOrder.objects.filter(pk=1).update(state="paid")


def order_with_outbox(key):
    with transaction.atomic():
        if ShopOrder.objects.filter(pk=1, state="open").update(state="paying"):
            Outbox.objects.create(order_id=1, amount=50)
    relay(key)


def relay(key):
    for letter in Outbox.objects.filter(sent=False):
        provider.charge("A1", letter.amount, key)
        with transaction.atomic():
            ShopOrder.objects.filter(pk=letter.order_id).update(state="paid")
            Outbox.objects.filter(pk=letter.pk).update(sent=True)


def tries(operation, key=""):
    return [worker("first try", operation, key), worker("second try", operation, key)]


def charged_exactly_once():
    charges = provider.done("charge A1")
    return charges == 1 if ShopOrder.objects.get().state == "paid" else charges <= 1


CRASH = {"faults": {"crashes": 1}, "needs": "crash", "verdict": VIOLATED}
LOST_REPLY = {"faults": {"lost_replies": 1}, "needs": "lost-reply", "verdict": VIOLATED}

CASE = Case(
    source="openfoodfoundation/openfoodnetwork#3925",
    setup=one_order,
    invariant=(charged_exactly_once, "the card was not charged exactly once"),
    broken=[
        Form(name="before the commit", workers=tries(pay), **CRASH),
        Form(name="before the commit, a reply is lost", workers=tries(pay), **LOST_REPLY),
        Form(name="after the commit", workers=tries(pay_afterwards), **CRASH),
        Form(name="after the commit, with a key", workers=tries(pay_afterwards, "A1"), **CRASH),
    ],
    mended=[
        Form(
            name="charge with a key, then mark",
            workers=tries(pay_with_key, "A1"),
            faults={"crashes": 1, "lost_replies": 1},
        ),
        Form(name="outbox", workers=tries(order_with_outbox, "A1"), faults={"crashes": 1}),
    ],
    cure="the provider's key",
)
