"""Violated: money appears or moves the wrong way, because of the transfers that nobody thought of.

To oneself: payer and payee are two objects of one row; the second `save()` overwrites the first, and the transfer has
made money. Of a negative amount: the check passes, and the payee pays. Twice: a double click sends one transfer two
times, and each is right by itself.

    Ann sends 30 to herself
    payer = get(Ann) → 100, payee = get(Ann) → 100
    payer: save 70
    payee: save 130

The first two need no second caller. The default invariant cannot tell them, nor the double click: each is what some
serial order does too. That is what an invariant of one's own is for.

Mended: refuse what is no transfer, let the database compute, and give each transfer an id under a constraint.
"""

from __future__ import annotations

from django.db import IntegrityError, models, transaction
from django.db.models import F, Sum

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form


class Holder(models.Model):
    name = models.CharField(max_length=20, unique=True)
    points = models.IntegerField(default=100)


class Transfer(models.Model):
    id = models.CharField(max_length=20, primary_key=True)


def two_holders():
    Holder.objects.create(name="Ann")
    Holder.objects.create(name="Bob")


def transfer(click, source, target, amount):
    with transaction.atomic():
        list(Holder.objects.select_for_update().filter(name__in=[source, target]).order_by("pk"))
        payer, payee = Holder.objects.get(name=source), Holder.objects.get(name=target)
        if payer.points < amount:
            return "not enough"
        payer.points -= amount
        payer.save()
        payee.points += amount
        payee.save()
    return "sent"


def transfer_once(click, source, target, amount):
    try:
        with transaction.atomic():
            Transfer.objects.create(id=click)
            if amount <= 0 or source == target:
                return "no transfer"
            list(Holder.objects.select_for_update().filter(name__in=[source, target]).order_by("pk"))
            if not Holder.objects.filter(name=source, points__gte=amount).update(points=F("points") - amount):
                return "not enough"
            Holder.objects.filter(name=target).update(points=F("points") + amount)
    except IntegrityError:
        return "sent already"
    return "sent"


def beside_another(operation, *transfer):
    return [
        worker("a transfer", operation, "c1", *transfer),
        worker("another", operation, "c2", "Ann", "Bob", 10),
    ]


def clicks(operation):
    return [worker(f"{name} click", operation, "c1", "Ann", "Bob", 30) for name in ("first", "second")]


def points_of(name):
    return Holder.objects.get(name=name).points


MADE = (lambda: Holder.objects.aggregate(sum=Sum("points"))["sum"] == 200, "points were made or lost")
ROBBED = (lambda: points_of("Bob") >= 100, "Bob has sent nothing, and has less")
TWICE = (lambda: points_of("Ann") >= 70, "one transfer was made twice")
SEQUENTIAL = {"verdict": VIOLATED, "found_by_default": False}

CASE = Case(
    source="uniqys/UniqysKit#16; RP-Kit/RPKit#247",
    setup=two_holders,
    invariant=MADE,
    broken=[
        Form(name="to oneself", workers=beside_another(transfer, "Ann", "Ann", 30), **SEQUENTIAL),
        Form(
            name="a negative amount",
            workers=beside_another(transfer, "Ann", "Bob", -50),
            invariant=ROBBED,
            **SEQUENTIAL,
        ),
        Form(name="the same twice", workers=clicks(transfer), invariant=TWICE, **SEQUENTIAL),
    ],
    mended=[
        Form(
            name="to oneself is refused",
            workers=beside_another(transfer_once, "Ann", "Ann", 30),
            faults={"crashes": 1},
        ),
        Form(
            name="a negative amount is refused",
            workers=beside_another(transfer_once, "Ann", "Bob", -50),
            mends="a negative amount",
            invariant=ROBBED,
            faults={"crashes": 1},
        ),
        Form(
            name="each transfer has an id",
            workers=clicks(transfer_once),
            invariant=TWICE,
            mends="the same twice",
            faults={"crashes": 1},
        ),
    ],
    cure="constraint",
)
