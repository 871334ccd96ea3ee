"""Violated: a booking that only had to be repeated fails, because the loop is inside of the transaction.

Under REPEATABLE READ the second of two writers gets "could not serialize". The remedy is to repeat the transaction.
Here the loop repeats the statement, inside of the same `atomic`: a transaction that has failed answers everything with
an error, so the second and the third round fail as well. The customer sees an error 500, and pays in another shop.

    Ann                                  Bob
    get → 100
                                         get → 100
    update, commit
                                         update: could not serialize
                                         get: the transaction is aborted

Mended: the loop is around the transaction.
"""

from __future__ import annotations

from django.db import DatabaseError, OperationalError, connection, models, transaction

from lost_update_lab import retrying, worker
from lost_update_lab.invariants import succeeded
from museum.case import VIOLATED, Case, Form


class Booking(models.Model):
    seats = models.IntegerField()


def one_show():
    Booking.objects.create(seats=9)


def repeatable_read():
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")


def take(seats):
    booking = Booking.objects.get(pk=1)
    booking.seats -= seats
    booking.save()


def book(seats):
    with transaction.atomic():
        repeatable_read()
        for attempt in range(3):
            try:
                take(seats)
                break
            except DatabaseError:
                if attempt == 2:
                    raise


def book_once(seats):
    with transaction.atomic():
        repeatable_read()
        take(seats)


def two(operation):
    return [worker("Ann", operation, 1), worker("Bob", operation, 2)]


def both_are_served(ann, bob):
    return succeeded(ann) and succeeded(bob) and Booking.objects.get().seats == 6


CASE = Case(
    source="SDU-eScience/UCloud#2917",
    setup=one_show,
    invariant=(both_are_served, "a booking failed that only had to be repeated"),
    broken=[Form(name="the loop is inside", workers=two(book), verdict=VIOLATED)],
    mended=[Form(name="the loop is around it", workers=two(retrying(book_once, OperationalError)))],
    cure="retry the whole transaction",
)
