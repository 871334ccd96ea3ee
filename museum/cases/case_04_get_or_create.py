"""Violated: an address has two rows, because `get_or_create` without a constraint is a check and an insert.

An app registers its push address twice at once. Both requests look, find nothing and create. From then on every `get`
of the address raises MultipleObjectsReturned: the customer is locked out, or is billed for two devices.

    first request                        second request
    get → none
                                         get → none
    create
                                         create: a second row

With a constraint Django's own `get_or_create` is right: it sets a savepoint, and reads what the other has written. Who
writes it by hand inside of `atomic` forgets the savepoint. The failed INSERT breaks the whole transaction, and what
else was in it is gone.

Mended: the constraint, and Django's method.
"""

from __future__ import annotations

from django.db import IntegrityError, models, transaction

from lost_update_lab import worker
from lost_update_lab.invariants import succeeded
from museum.case import VIOLATED, Case, Form


class Device(models.Model):
    address = models.CharField(max_length=20)


class UniqueDevice(models.Model):
    address = models.CharField(max_length=20, unique=True)


class SignIn(models.Model):
    name = models.CharField(max_length=20)


def nobody():
    SignIn.objects.create(name="before")


def register(name, model):
    with transaction.atomic():
        SignIn.objects.create(name=name)
        model.objects.get_or_create(address="t1")


def register_by_hand(name):
    with transaction.atomic():
        SignIn.objects.create(name=name)
        try:
            UniqueDevice.objects.get(address="t1")
        except UniqueDevice.DoesNotExist:
            try:
                UniqueDevice.objects.create(address="t1")
            except IntegrityError:
                UniqueDevice.objects.get(address="t1")


def requests(operation, *arguments):
    return [worker(f"{name} request", operation, name, *arguments) for name in ("first", "second")]


def all_are_there(first, second):
    return succeeded(first) and succeeded(second) and SignIn.objects.count() == 3


CASE = Case(
    source="readthedocs/readthedocs.org#7727",
    setup=nobody,
    invariant=(lambda: Device.objects.count() <= 1, "an address has two rows"),
    broken=[
        Form(name="no constraint", workers=requests(register, Device), verdict=VIOLATED),
        Form(
            name="by hand, inside of atomic",
            workers=requests(register_by_hand),
            invariant=(all_are_there, "a sign-in is gone with the transaction that get_or_create broke"),
            verdict=VIOLATED,
        ),
    ],
    mended=[
        Form(
            name="a constraint, and Django's method",
            workers=requests(register, UniqueDevice),
            invariant=(all_are_there, "a sign-in is gone"),
        )
    ],
    cure="constraint",
)
