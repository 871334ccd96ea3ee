"""A row of the lock table of E9 (docs/sources.md), with an owner, which only the corrected form uses."""

from __future__ import annotations

from django.db import models


class LockRecord(models.Model):
    """The locks in ledger/lock_tables/ define the meaning of each column."""

    class Status(models.IntegerChoices):
        FREE = 0
        LOCKED = 1

    name = models.CharField(max_length=250, unique=True)
    count = models.IntegerField(
        default=0, help_text="a counter of this name: the table holds locks and counters"
    )
    deadline = models.DateTimeField(null=True, blank=True, help_text="end of the lease")
    description = models.CharField(max_length=200, blank=True)
    status = models.SmallIntegerField(choices=Status, default=Status.FREE)
    owner = models.CharField(max_length=40, blank=True)
    created = models.DateTimeField(auto_now_add=True)
    updated = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.name}: {self.Status(self.status).label}"
