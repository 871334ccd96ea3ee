"""Violated: two live rows have one name, because the constraint has a column that is NULL in each of them.

A tenant is deleted softly: `deleted` gets a date. So that its name can be used again, the constraint covers the name
and the date. But NULL differs from NULL, so it never holds between two rows that live, and the check in Python is a
look and no lock. An old tenant that is restored at the same moment gets past it too.

    restore the old "acme"               create a new "acme"
    does one live? no
                                         does one live? no
    deleted = NULL
                                         insert: two live rows are "acme"

Mended: a unique constraint on the name with the condition that the row lives.
"""

from __future__ import annotations

from django.db import IntegrityError, models

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form


class Tenant(models.Model):
    name = models.CharField(max_length=20)
    deleted = models.DateField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "deleted"], name="name_and_deleted")]


class LiveTenant(models.Model):
    name = models.CharField(max_length=20)
    deleted = models.DateField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["name"], condition=models.Q(deleted=None), name="one_lives")
        ]


def one_deleted():
    for model in (Tenant, LiveTenant):
        model.objects.create(name="acme", deleted="2026-01-01")


def create():
    if Tenant.objects.filter(name="acme", deleted=None).exists():
        return "taken"
    Tenant.objects.create(name="acme")
    return "created"


def restore():
    if Tenant.objects.filter(name="acme", deleted=None).exists():
        return "taken"
    Tenant.objects.filter(name="acme", deleted="2026-01-01").update(deleted=None)
    return "restored"


def create_constrained():
    try:
        LiveTenant.objects.create(name="acme")
    except IntegrityError:
        return "taken"
    return "created"


def restore_constrained():
    try:
        LiveTenant.objects.filter(name="acme", deleted="2026-01-01").update(deleted=None)
    except IntegrityError:
        return "taken"
    return "restored"


def alive():
    return max(model.objects.filter(name="acme", deleted=None).count() for model in (Tenant, LiveTenant))


CASE = Case(
    source="typeorm/typeorm#7549; drneox/django-paranoid#18",
    setup=one_deleted,
    invariant=(lambda: alive() <= 1, "two live tenants have one name"),
    broken=[
        Form(name="create twice", workers=[worker("Ann", create), worker("Bob", create)], verdict=VIOLATED),
        Form(
            name="restore against create",
            workers=[worker("Ann", restore), worker("Bob", create)],
            verdict=VIOLATED,
        ),
    ],
    mended=[
        Form(
            name="a constraint with a condition",
            workers=[worker("Ann", restore_constrained), worker("Bob", create_constrained)],
            mends="restore against create",
            faults={"crashes": 1},
        )
    ],
    cure="constraint",
)
