"""Violated: points are credited twice, because an F() stays on the object and is applied by every `save()`.

`member.points = F("points") + 10` is the cure for a lost update. But the expression stays in the attribute after the
`save()`. A second `save()` of the same object, for another field, adds 10 once more. No second caller is needed, so no
isolation level and no lock helps.

    the one caller
    points = points + 10        (save)
    tier = "silver", points = points + 10        (save, for the tier)

The default invariant cannot tell: each serial order credits twice too. The case's own sentence tells.

Mended: `update()` in the database, which leaves nothing on the object; or `save(update_fields=…)`.
"""

from __future__ import annotations

from django.db import models
from django.db.models import F

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form


class Member(models.Model):
    name = models.CharField(max_length=20)
    points = models.IntegerField(default=0)
    tier = models.CharField(max_length=20, default="none")


def one_member():
    Member.objects.create(name="Ann")


def credit(tier):
    member = Member.objects.get(name="Ann")
    member.points = F("points") + 10
    member.save()
    member.tier = tier
    member.save()


def credit_by_update(tier):
    Member.objects.filter(name="Ann").update(points=F("points") + 10)
    Member.objects.filter(name="Ann").update(tier=tier)


def credit_by_fields(tier):
    member = Member.objects.get(name="Ann")
    member.points = F("points") + 10
    member.save(update_fields=["points"])
    member.tier = tier
    member.save(update_fields=["tier"])


def two(operation):
    return [worker("order", operation, "silver"), worker("review", operation, "silver")]


CASE = Case(
    source="django/django#6500, django/django#11201",
    setup=one_member,
    invariant=(lambda: Member.objects.get().points <= 20, "20 points were earned, and more were credited"),
    broken=[
        Form(name="F() and two saves", workers=two(credit), verdict=VIOLATED, found_by_default=False),
    ],
    mended=[
        Form(name="update()", workers=two(credit_by_update), faults={"crashes": 1}),
        Form(name="update_fields", workers=two(credit_by_fields), faults={"crashes": 1}),
    ],
    cure="conditional UPDATE",
)
