"""Violated: one item is sold twice, because the stock is checked in one row and taken from another.

The product has 1 in stock. An order line reserves an item: the sum of the reservations is compared with the stock, and
the stock itself goes down when the parcel leaves. The check and the decrement look at different rows.

    Ann                                  Bob
    stock 1
                                         stock 1
    1 > 0: an order line is written
                                         1 > 0: an order line is written
    stock = stock - 1 → 0
                                         stock = stock - 1 → -1

Mended: the UPDATE itself has the condition, and the order line is written only if it has found a row. A CHECK on the
column is the net below it: who comes second gets an error, and is rolled back.
"""

from __future__ import annotations

from django.db import IntegrityError, models, transaction
from django.db.models import F

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form


class Product(models.Model):
    name = models.CharField(max_length=20)
    stock = models.IntegerField()


class CheckedProduct(models.Model):
    name = models.CharField(max_length=20)
    stock = models.IntegerField()

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(stock__gte=0), name="never_below_zero")]


class OrderLine(models.Model):
    customer = models.CharField(max_length=20)
    product = models.CharField(max_length=20)


def one_lamp():
    Product.objects.create(name="lamp", stock=1)
    CheckedProduct.objects.create(name="lamp", stock=1)


def buy(customer):
    if Product.objects.get(name="lamp").stock < 1:
        return "sold out"
    with transaction.atomic():
        OrderLine.objects.create(customer=customer, product="lamp")
        Product.objects.filter(name="lamp").update(stock=F("stock") - 1)
    return "sold"


def buy_conditionally(customer):
    with transaction.atomic():
        if not Product.objects.filter(name="lamp", stock__gte=1).update(stock=F("stock") - 1):
            return "sold out"
        OrderLine.objects.create(customer=customer, product="lamp")
    return "sold"


def buy_checked(customer):
    try:
        with transaction.atomic():
            OrderLine.objects.create(customer=customer, product="lamp")
            CheckedProduct.objects.filter(name="lamp").update(stock=F("stock") - 1)
    except IntegrityError:
        return "sold out"
    return "sold"


def customers(operation):
    return [worker("Ann", operation, "Ann"), worker("Bob", operation, "Bob")]


CASE = Case(
    source="ACIDRain (Warszawski and Bailis, SIGMOD 2017): inventory",
    setup=one_lamp,
    invariant=(lambda: OrderLine.objects.count() <= 1, "the only lamp was sold twice"),
    broken=[Form(name="check, then decrement", workers=customers(buy), verdict=VIOLATED)],
    mended=[
        Form(name="conditional UPDATE", workers=customers(buy_conditionally), faults={"crashes": 1}),
        Form(name="CHECK on the column", workers=customers(buy_checked), faults={"crashes": 1}),
    ],
    cure="conditional UPDATE",
)
