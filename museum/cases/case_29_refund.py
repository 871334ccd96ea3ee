"""Violated: more is refunded than was paid, or a payment is captured and voided, because two clerks act at once.

A refund asks what was refunded so far, and calls the provider. Two refunds of 60 on a payment of 100 both see 0. And
while one clerk captures an authorized payment, another one voids it: both see `authorized`, and the provider does both.

    refund 1                             refund 2
    sum of the refunds → 0
                                         sum of the refunds → 0
    provider: refund 60
                                         provider: refund 60

Mended: in two phases. First the payment's row is changed, under its lock and in a transaction of its own: who comes
second sees it. Then the provider is called.
"""

from __future__ import annotations

from django.db import models, transaction
from django.db.models import Sum

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form
from museum.outside import provider


class Payment(models.Model):
    amount = models.IntegerField()
    state = models.CharField(max_length=20, default="authorized")


class Refund(models.Model):
    payment = models.ForeignKey(Payment, models.CASCADE)
    amount = models.IntegerField()


def one_payment():
    Payment.objects.create(amount=100)


def refunded(payment):
    return payment.refund_set.aggregate(sum=Sum("amount"))["sum"] or 0


def refund(amount):
    payment = Payment.objects.get(pk=1)
    if refunded(payment) + amount > payment.amount:
        return "too much"
    provider.refund("A1", amount)
    payment.refund_set.create(amount=amount)
    return "refunded"


def capture():
    payment = Payment.objects.get(pk=1)
    if payment.state == "authorized":
        provider.capture("A1")
        payment.state = "captured"
        payment.save()


def void():
    payment = Payment.objects.get(pk=1)
    if payment.state == "authorized":
        provider.void("A1")
        payment.state = "voided"
        payment.save()


def refund_in_two_phases(amount):
    with transaction.atomic():
        payment = Payment.objects.select_for_update().get(pk=1)
        if refunded(payment) + amount > payment.amount:
            return "too much"
        row = payment.refund_set.create(amount=amount)
    provider.refund("A1", amount, key=f"refund {row.pk}")
    return "refunded"


def capture_in_two_phases():
    if Payment.objects.filter(pk=1, state="authorized").update(state="capturing"):
        provider.capture("A1")
        Payment.objects.filter(pk=1).update(state="captured")


def void_in_two_phases():
    if Payment.objects.filter(pk=1, state="authorized").update(state="voiding"):
        provider.void("A1")
        Payment.objects.filter(pk=1).update(state="voided")


def two_refunds(operation):
    return [worker("refund 1", operation, 60), worker("refund 2", operation, 60)]


def two_clerks(one, other):
    return [worker("capture", one), worker("void", other)]


CASE = Case(
    source="juspay/hyperswitch#13182",
    setup=one_payment,
    invariant=[
        (lambda: provider.done("refund A1") <= 1, "120 of 100 were refunded"),
        (
            lambda: provider.done("capture A1") + provider.done("void A1") <= 1,
            "a payment was captured and voided",
        ),
    ],
    broken=[
        Form(name="two refunds", workers=two_refunds(refund), verdict=VIOLATED),
        Form(name="capture against void", workers=two_clerks(capture, void), verdict=VIOLATED),
    ],
    mended=[
        Form(name="refund in two phases", workers=two_refunds(refund_in_two_phases), faults={"crashes": 1}),
        Form(
            name="capture in two phases",
            workers=two_clerks(capture_in_two_phases, void_in_two_phases),
            mends="capture against void",
            faults={"crashes": 1},
        ),
    ],
    cure="lock before read",
)
