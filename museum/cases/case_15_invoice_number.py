"""Violated: two invoices have one number; or a number is missing, because a sequence does not roll back.

Tax law wants invoice numbers without duplicates and without gaps. MAX + 1 reads what the other has not yet committed.

    Ann                                  Bob
    max → 0
                                         max → 0
    insert invoice 1
                                         insert invoice 1

A sequence never gives a number twice. But it is no part of the transaction: if the order fails behind it, or its worker
dies, the number is spent, and the auditor asks for invoice 1.

Mended: the next number is a row. Its UPDATE is the lock, and it rolls back with the order.
"""

from __future__ import annotations

from django.db import connection, models, transaction
from django.db.models import F, Max

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form


class Invoice(models.Model):
    number = models.IntegerField()
    order = models.CharField(max_length=20)


class Ticket(models.Model):
    """Its id is the sequence."""


class NextNumber(models.Model):
    value = models.IntegerField()


def a_counter():
    NextNumber.objects.create(value=0)


def bill_by_max(order):
    with transaction.atomic():
        last = Invoice.objects.aggregate(last=Max("number"))["last"] or 0
        Invoice.objects.create(number=last + 1, order=order)


def bill_by_sequence(order):
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('museum_ticket_id_seq')")
        (number,) = cursor.fetchone()
    Invoice.objects.create(number=number, order=order)


def bill_by_row(order):
    with transaction.atomic():
        NextNumber.objects.update(value=F("value") + 1)
        Invoice.objects.create(number=NextNumber.objects.get().value, order=order)


def orders(operation):
    return [worker("Ann", operation, "A1"), worker("Bob", operation, "A2")]


def numbers_are_right():
    numbers = sorted(Invoice.objects.values_list("number", flat=True))
    return numbers == list(range(1, len(numbers) + 1))


CASE = Case(
    source="PrestaShop/PrestaShop#28757",
    setup=a_counter,
    invariant=(numbers_are_right, "an invoice number is there twice, or is missing"),
    broken=[
        Form(name="MAX + 1", workers=orders(bill_by_max), verdict=VIOLATED),
        Form(
            name="a sequence",
            workers=orders(bill_by_sequence),
            faults={"crashes": 1},
            needs="crash",
            verdict=VIOLATED,
            found_by_default=False,  # which numbers a sequence gives is no part of an outcome
        ),
    ],
    mended=[Form(name="a row that is counted up", workers=orders(bill_by_row), faults={"crashes": 1})],
    cure="conditional UPDATE",
)
