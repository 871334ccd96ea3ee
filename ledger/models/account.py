"""An account: a balance, the version of it, and the entry that wrote it last."""

from __future__ import annotations

from django.db import models

from ledger.models.book import Book


class Account(models.Model):
    """`head` is the id of the entry that wrote `balance`; None while nothing was posted since the opening."""

    book = models.ForeignKey(Book, on_delete=models.CASCADE, related_name="accounts")
    number = models.CharField(max_length=40)
    name = models.CharField(max_length=200, blank=True)
    opening = models.BigIntegerField(default=0, help_text="minor units")
    balance = models.BigIntegerField(default=0, help_text="minor units")
    version = models.BigIntegerField(default=0)
    head = models.UUIDField(null=True, editable=False)
    fence = models.BigIntegerField(default=0, editable=False, help_text="the newest fencing number seen")
    floor = models.BigIntegerField(
        null=True, blank=True, help_text="the business refuses a balance below this"
    )

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["book", "number"], name="account_once_in_a_book")]

    def __str__(self) -> str:
        return self.number
