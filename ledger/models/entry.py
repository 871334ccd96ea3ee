"""An entry: one append-only record of a posting applied to an account. Entries form a tree, as commits do."""

from __future__ import annotations

import uuid

from django.db import models

from ledger.models.account import Account
from ledger.models.book import Book
from ledger.models.sequence import NextEntry


class Entry(models.Model):
    """What one writer did: what it had read (`parent`, `balance_before`) and what it wrote.

    It is never updated or deleted: a trigger refuses both, even in plain SQL (migration 0002). An account with
    entries is never deleted either: a trigger refuses it on PostgreSQL (migration 0008), a foreign key on MariaDB.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    book = models.ForeignKey(
        Book, on_delete=models.PROTECT, related_name="+", db_index=False, db_constraint=False
    )
    account = models.ForeignKey(
        Account, on_delete=models.PROTECT, related_name="entries", db_constraint=False
    )
    key = models.CharField(max_length=100, help_text="the posting's idempotency key")
    fingerprint = models.CharField(max_length=64, help_text="hash of the request that came with the key")
    place = models.PositiveIntegerField(
        db_default=0, editable=False, help_text="which of its posting's entries: 0, 1, …"
    )
    amount = models.BigIntegerField(help_text="minor units")
    balance_before = models.BigIntegerField(help_text="what the writer had read")
    balance_after = models.BigIntegerField(help_text="what the writer wrote")
    parent = models.UUIDField(null=True, help_text="the head that the writer had read")
    seq = models.BigIntegerField(
        db_default=NextEntry(),
        editable=False,
        help_text="the server's order of writes: drawn while the account's row is locked, so that the next higher "
        "one on an account is the write that came over this one",
    )
    worker = models.CharField(max_length=100, help_text="host:process:thread")
    read_at = models.DateTimeField(help_text="when the writer had read, by its own clock")
    written_at = models.DateTimeField(help_text="when the writer wrote, by its own clock")

    class Meta:
        ordering = ["written_at"]
        verbose_name_plural = "entries"
        # not (book, key, account): one key may come with other accounts, or to another row of a split account
        constraints = [models.UniqueConstraint(fields=["book", "key", "place"], name="a_key_once_in_a_book")]

    def __str__(self) -> str:
        return f"{self.balance_before} {self.amount:+d} → {self.balance_after}"
