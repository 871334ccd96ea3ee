"""An owner: the process that may write a book's accounts until its lease ends, and its fencing number."""

from __future__ import annotations

from django.db import models

from ledger.models.book import Book


class BookOwner(models.Model):
    """`fence` grows with each owner of the book; a group commits only with the newest one (ledger/writer/)."""

    book = models.OneToOneField(Book, on_delete=models.CASCADE, primary_key=True, related_name="+")
    fence = models.BigIntegerField()
    holder = models.CharField(max_length=100, help_text="host:process:thread")
    until = models.DateTimeField(help_text="end of the lease, by the database's clock")
    address = models.CharField(max_length=200, db_default="", help_text="where it listens: unix:… or tcp:…")
    secret = models.CharField(max_length=64, db_default="", help_text="what its callers must say first")

    def __str__(self) -> str:
        return f"{self.holder} ({self.fence})"
