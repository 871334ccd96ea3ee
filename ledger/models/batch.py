"""An import: the uploaded files, the chunks in which they are processed, and which worker holds which chunk.

    ImportRun ─┬─ ImportBatch (one seller's file) ─┬─ ImportChunk ── ImportLine …
               └─ ImportBatch (the scheduled scan) └─ ImportChunk ── ImportLine …

The queue only says "there is work in run 7". These rows say what is done and what is not, so any other worker can
replace one that was killed.
"""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from ledger.models.book import Book


class ImportFile(models.Model):
    """The bytes of an uploaded file, once for each content, so that the same files can be repeated."""

    sha256 = models.CharField(max_length=64, unique=True)
    content = models.BinaryField()

    def __str__(self) -> str:
        return self.sha256[:12]


class ImportRun(models.Model):
    """One press of "Import concurrently": several files into one book by `workers` parallel workers."""

    class Way(models.TextChoices):
        LINE_BY_LINE = "line-by-line", "line by line, under the strategy"
        SET_BASED = "set-based", "set-based"

    book = models.ForeignKey(Book, on_delete=models.PROTECT, related_name="import_runs")
    workers = models.PositiveSmallIntegerField(default=4, help_text="chunks worked on at the same time")
    way = models.CharField(
        max_length=12, choices=Way, default=Way.LINE_BY_LINE, help_text="how lines are posted"
    )
    all_or_nothing = models.BooleanField(default=False, help_text="a file with one bad line posts nothing")
    scan = models.BooleanField(
        default=True, help_text="the scheduled scan charges the same accounts meanwhile"
    )
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+"
    )
    created = models.DateTimeField(auto_now_add=True)
    finished = models.DateTimeField(null=True, editable=False)
    stopped = models.BooleanField(default=False, editable=False, help_text="somebody ended it")

    class Meta:
        ordering = ["-created"]
        verbose_name = "import"

    def __str__(self) -> str:
        return f"import {self.pk}"

    @property
    def word(self) -> str:
        """Return its state: "running", "stopped" or "finished"."""
        if not self.finished:
            return "running"
        return "stopped" if self.stopped else "finished"


class ImportBatch(models.Model):
    """One seller's file, or the lines that the scheduled scan adds to a run."""

    class Kind(models.TextChoices):
        FILE = "file"
        SCAN = "scan"

    class State(models.TextChoices):
        REJECTED = (
            "rejected",
            "rejected",
        )  # unreadable, or one bad line under all-or-nothing: nothing is posted
        DUPLICATE = "duplicate", "imported before"
        RUNNING = "running", "running"
        FINISHED = "finished", "finished"

    run = models.ForeignKey(ImportRun, on_delete=models.PROTECT, related_name="batches")
    book = models.ForeignKey(Book, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=4, choices=Kind, default=Kind.FILE)
    name = models.CharField(max_length=200, help_text="file name as uploaded")
    file = models.ForeignKey(ImportFile, null=True, on_delete=models.PROTECT, related_name="batches")
    state = models.CharField(max_length=9, choices=State, default=State.RUNNING)
    problem = models.CharField(max_length=500, blank=True, help_text="why the whole file was not imported")
    duplicate_of = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+")
    posting_key = models.CharField(
        max_length=100, blank=True, help_text="all or nothing: the key of the one posting that the file is"
    )

    #: states in which a file's content is taken: the same bytes again are a duplicate
    TAKEN: ClassVar = (State.RUNNING, State.FINISHED)

    class Meta:
        ordering = ["pk"]
        verbose_name_plural = "import batches"
        constraints = [
            models.UniqueConstraint(
                fields=["book", "file"],
                condition=Q(state__in=["running", "finished"]),
                name="a_file_once_in_a_book",
            ),
            models.UniqueConstraint(fields=["run"], condition=Q(kind="scan"), name="one_scan_in_an_import"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def set_based(self) -> bool:
        """Are its chunks one transaction each? The scheduled scan's lines always go through the strategy."""
        return self.kind == self.Kind.FILE and self.run.way == ImportRun.Way.SET_BASED


class ImportChunk(models.Model):
    """Some lines of a batch. One worker at a time processes them, while its lease runs.

    The lease only saves work: a worker that outlives its lease may meet the next one on the same line. The line's key
    is what lets it be posted only once.
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        WORKING = "working"
        DONE = "done"

    batch = models.ForeignKey(ImportBatch, on_delete=models.PROTECT, related_name="chunks")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    not_before = models.DateTimeField(
        default=timezone.now, help_text="lines that met a busy account wait until then"
    )
    lane = models.PositiveSmallIntegerField(null=True, help_text="which of the run's parallel workers")
    worker = models.CharField(max_length=100, blank=True, help_text="host:process:thread")
    lease_until = models.DateTimeField(null=True)
    token = models.PositiveIntegerField(default=0, help_text="how often it was claimed: whose claim counts")

    class Meta:
        ordering = ["pk"]
        constraints = [models.UniqueConstraint(fields=["batch", "number"], name="a_chunk_once_in_a_batch")]
        indexes = [models.Index(fields=["number", "batch"], condition=~Q(state="done"), name="open_chunks")]

    def __str__(self) -> str:
        return f"{self.batch} / {self.number}"
