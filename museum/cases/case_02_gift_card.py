"""Violated: a gift card pays two orders, because what it still holds is a sum over rows that nobody locks.

Two checkouts ask what is left on the card: its value less the payments so far. Each sees 100, and each writes a payment
of its own. No row is written twice, so there is no lost update to notice: this is write skew.

    checkout 1                           checkout 2
    sum of the payments → 0
                                         sum of the payments → 0
    100 are left: pay 80
                                         100 are left: pay 80
                                         the card of 100 has paid 160

Mended: the card's row is locked before the sum; or the transaction is SERIALIZABLE, and its caller repeats it.
"""

from __future__ import annotations

from django.db import OperationalError, connection, models, transaction
from django.db.models import Sum

from lost_update_lab import retrying, worker
from museum.case import VIOLATED, Case, Form


class GiftCard(models.Model):
    number = models.CharField(max_length=20, unique=True)
    value = models.IntegerField()


class CardPayment(models.Model):
    card = models.ForeignKey(GiftCard, models.CASCADE)
    order = models.CharField(max_length=20)
    amount = models.IntegerField()


def one_card():
    GiftCard.objects.create(number="4711", value=100)


def left_on(card):
    return card.value - (card.cardpayment_set.aggregate(paid=Sum("amount"))["paid"] or 0)


def pay(number, order, amount):
    with transaction.atomic():
        card = GiftCard.objects.get(number=number)
        if left_on(card) < amount:
            return "not enough"
        card.cardpayment_set.create(order=order, amount=amount)
    return "paid"


def pay_locked(number, order, amount):
    with transaction.atomic():
        card = GiftCard.objects.select_for_update().get(number=number)
        if left_on(card) < amount:
            return "not enough"
        card.cardpayment_set.create(order=order, amount=amount)
    return "paid"


def pay_serializable(number, order, amount):
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        card = GiftCard.objects.get(number=number)
        if left_on(card) < amount:
            return "not enough"
        card.cardpayment_set.create(order=order, amount=amount)
    return "paid"


def orders(operation):
    return [worker(f"checkout {number}", operation, "4711", f"order {number}", 80) for number in (1, 2)]


CASE = Case(
    source="ACIDRain (Warszawski and Bailis, SIGMOD 2017): gift cards",
    setup=one_card,
    invariant=(lambda: left_on(GiftCard.objects.get()) >= 0, "the gift card has paid more than it holds"),
    broken=[Form(name="sum, then insert", workers=orders(pay), verdict=VIOLATED)],
    mended=[
        Form(name="lock the card first", workers=orders(pay_locked), faults={"crashes": 1}),
        Form(
            name="SERIALIZABLE, repeated",
            workers=orders(retrying(pay_serializable, OperationalError)),
            faults={"crashes": 1},
        ),
    ],
    cure="lock before read",
)
