"""A line of an import: its request, its key, and its outcome."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from ledger.models.batch import ImportBatch, ImportChunk
from ledger.models.book import Book


class ImportLine(models.Model):
    """One line. `key` is its posting's idempotency key, made of seller and reference.

    In a book, one line at most holds a key in one of the states TAKEN. A posted line is final, and only a line whose
    entry is in the books can become posted. A trigger enforces both (migration 0004).
    """

    class State(models.TextChoices):
        BAD = "bad", "bad"  # never requested: it cannot be read, or its account is unknown
        KNOWN = "known", "imported before"  # another line of the book has this key, with the same request
        WAITING = "waiting", "waiting"
        POSTED = "posted", "posted"
        REFUSED = "refused", "refused"  # by the business: certainly not applied
        BUSY = "busy", "busy"  # the strategy gave up, each time: certainly not applied
        UNKNOWN = "unknown", "unknown"  # an error each time, or refused or busy while in `doubt`
        STOPPED = "stopped", "stopped"  # before there was an answer: it may have been applied

    TAKEN: ClassVar = (State.WAITING, State.POSTED, State.UNKNOWN, State.STOPPED)
    #: its outcome is not known yet
    UNANSWERED: ClassVar = (State.WAITING, State.STOPPED)
    #: the states that "try again" may set back to waiting
    RETRIABLE: ClassVar = (State.REFUSED, State.BUSY, State.UNKNOWN, State.STOPPED)

    batch = models.ForeignKey(ImportBatch, on_delete=models.PROTECT, related_name="lines")
    book = models.ForeignKey(Book, on_delete=models.PROTECT, related_name="+", db_index=False)
    chunk = models.ForeignKey(ImportChunk, null=True, on_delete=models.PROTECT, related_name="lines")
    number = models.PositiveIntegerField(help_text="line number in the file; the header is line 1")
    seller = models.CharField(max_length=40, blank=True)
    account = models.CharField(max_length=40, blank=True)
    amount = models.BigIntegerField(null=True, help_text="minor units")
    reference = models.CharField(max_length=50, blank=True)
    key = models.CharField(max_length=100, blank=True)
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    problem = models.CharField(max_length=300, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    doubt = models.BooleanField(
        db_default=False,
        editable=False,
        help_text="a request for it was never answered, and may yet be applied: until it is posted, nothing else is "
        "certain",
    )
    entry = models.UUIDField(null=True, help_text="the entry that posted it")
    worker = models.CharField(max_length=100, blank=True)
    started = models.DateTimeField(null=True)
    ended = models.DateTimeField(null=True)

    class Meta:
        ordering = ["batch", "number"]
        constraints = [
            models.UniqueConstraint(
                fields=["book", "key"],
                condition=Q(state__in=["waiting", "posted", "unknown", "stopped"]),
                name="an_import_key_once_in_a_book",
            )
        ]
        indexes = [models.Index(fields=["batch", "state"], name="lines_by_state")]

    def __str__(self) -> str:
        return f"line {self.number}"
