"""What reconcile found in a book last, so that a list of books can say it without reading their entries again."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils import timezone

from ledger.models.book import Book
from ledger.reconcile import Books


def _sum() -> models.DecimalField[Any, Any]:
    """A sum over a book's accounts, in minor units. Each balance is a BIGINT, so their sum may be none."""
    return models.DecimalField(max_digits=30, decimal_places=0, help_text="minor units")


class Reconciliation(models.Model):
    """One for each book that was reconciled. What was posted since is not in it: `at` says when it was."""

    book = models.OneToOneField(
        Book, on_delete=models.CASCADE, primary_key=True, related_name="reconciliation"
    )
    state = models.CharField(max_length=20, help_text="see Books.state")
    entries = models.BigIntegerField()
    expected = _sum()
    final = _sum()
    lost_amount = _sum()
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.state

    @staticmethod
    def record(book: Book, books: Books) -> None:
        """Replace what was found before."""
        figures = {
            name: getattr(books, name) for name in ("state", "entries", "expected", "final", "lost_amount")
        }
        found = Reconciliation(book=book, at=timezone.now(), **figures)
        Reconciliation.objects.bulk_create(
            [found], update_conflicts=True, unique_fields=["book"], update_fields=[*figures, "at"]
        )
