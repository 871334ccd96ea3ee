"""Violated: a voucher with one use is used twice, because each request counts the uses before it inserts its own.

Ann and Bob check out with the same code. Each counts the redemptions, finds none, and adds one. There is no row to
collide on, so no isolation level below SERIALIZABLE helps, and neither does `atomic`.

    Ann                                  Bob
    count of redemptions → 0
                                         count of redemptions → 0
    0 < 1: insert Ann's redemption
                                         0 < 1: insert Bob's redemption

Mended: the voucher's row is locked before the count; or the uses are a number on the voucher, and one conditional
UPDATE takes a use and asks whether there was one.
"""

from __future__ import annotations

from django.db import models, transaction
from django.db.models import F

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form


class Voucher(models.Model):
    code = models.CharField(max_length=20, unique=True)
    limit = models.IntegerField()
    used = models.IntegerField(default=0)


class Redemption(models.Model):
    voucher = models.ForeignKey(Voucher, models.CASCADE)
    customer = models.CharField(max_length=20)


def one_voucher():
    Voucher.objects.create(code="XMAS", limit=1)


def redeem(code, customer):
    with transaction.atomic():
        voucher = Voucher.objects.get(code=code)
        if voucher.redemption_set.count() >= voucher.limit:
            return "used up"
        voucher.redemption_set.create(customer=customer)
    return "redeemed"


def redeem_once_per_customer(code, customer):
    with transaction.atomic():
        voucher = Voucher.objects.get(code=code)
        if voucher.redemption_set.filter(customer=customer).exists():
            return "used already"
        voucher.redemption_set.create(customer=customer)
    return "redeemed"


def redeem_locked(code, customer):
    with transaction.atomic():
        voucher = Voucher.objects.select_for_update().get(code=code)
        if voucher.redemption_set.count() >= voucher.limit:
            return "used up"
        voucher.redemption_set.create(customer=customer)
    return "redeemed"


def redeem_conditionally(code, customer):
    with transaction.atomic():
        if not Voucher.objects.filter(code=code, used__lt=F("limit")).update(used=F("used") + 1):
            return "used up"
        Voucher.objects.get(code=code).redemption_set.create(customer=customer)
    return "redeemed"


def customers(operation):
    return [worker("Ann", operation, "XMAS", "Ann"), worker("Bob", operation, "XMAS", "Bob")]


def clicks(operation):
    return [worker("first click", operation, "XMAS", "Ann"), worker("second click", operation, "XMAS", "Ann")]


CASE = Case(
    source="ACIDRain (Warszawski and Bailis, SIGMOD 2017): vouchers",
    setup=one_voucher,
    invariant=(lambda: Redemption.objects.count() <= 1, "a voucher with one use was used twice"),
    broken=[
        Form(name="count, then insert", workers=customers(redeem), verdict=VIOLATED),
        Form(name="once per customer", workers=clicks(redeem_once_per_customer), verdict=VIOLATED),
    ],
    mended=[
        Form(name="lock the voucher first", workers=customers(redeem_locked), faults={"crashes": 1}),
        Form(name="conditional UPDATE", workers=customers(redeem_conditionally), faults={"crashes": 1}),
    ],
    cure="lock before read",
)
