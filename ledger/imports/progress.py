"""The progress of an import: counts of its lines, from the rows that the workers write."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db.models import Count, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from ledger.models import ImportBatch, ImportChunk, ImportLine, ImportRun

State = ImportLine.State
#: the states that a person should look at, in display order
PROBLEMS = (State.BAD, State.REFUSED, State.BUSY, State.UNKNOWN, State.STOPPED, State.KNOWN)


@dataclass(frozen=True)
class BatchProgress:
    """One batch, with the number of its lines in each state."""

    batch: ImportBatch
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def waiting(self) -> int:
        return sum(self.counts.get(state, 0) for state in ImportLine.UNANSWERED)

    @property
    def word(self) -> tuple[str, str]:
        """Return (name, label) of the batch's state: "stopped" if it was cut short."""
        stopped = State.STOPPED in self.counts
        return (State.STOPPED, "stopped") if stopped else (self.batch.state, self.batch.get_state_display())

    @property
    def done(self) -> int:
        return self.total - self.waiting

    @property
    def posted(self) -> int:
        return self.counts.get(State.POSTED, 0)

    @property
    def problems(self) -> list[tuple[str, int]]:
        return [(state.label, self.counts[state]) for state in PROBLEMS if self.counts.get(state)]


@dataclass(frozen=True)
class ImportProgress:
    """A whole import. `workers`: the workers that hold a chunk of its files right now."""

    run: ImportRun
    files: list[BatchProgress]
    scan: BatchProgress | None
    rounds: int
    workers: list[str]

    @property
    def posted(self) -> int:
        return sum(each.posted for each in (*self.files, *([self.scan] if self.scan else [])))

    @property
    def total(self) -> int:
        return sum(each.total for each in self.files)

    @property
    def done(self) -> int:
        return sum(each.done for each in self.files)

    @property
    def seconds(self) -> float:
        return ((self.run.finished or timezone.now()) - self.run.created).total_seconds()

    @property
    def per_second(self) -> float:
        return self.posted / self.seconds if self.seconds else 0.0

    @property
    def retriable(self) -> int:
        batches = (*self.files, *([self.scan] if self.scan else []))
        return sum(each.counts.get(state, 0) for each in batches for state in ImportLine.RETRIABLE)


def progress(run: ImportRun) -> ImportProgress:
    """Return the current progress of `run`."""
    counts: dict[int, dict[str, int]] = {}
    lines = ImportLine.objects.filter(batch__run=run).order_by().values_list("batch", "state")
    for batch, state, count in lines.annotate(count=Count("pk")):
        counts.setdefault(batch, {})[state] = count
    batches = [
        BatchProgress(batch, counts.get(batch.pk, {})) for batch in run.batches.select_related("duplicate_of")
    ]
    chunks = ImportChunk.objects.filter(batch__run=run)
    return ImportProgress(
        run=run,
        files=[each for each in batches if each.batch.kind == ImportBatch.Kind.FILE],
        scan=next((each for each in batches if each.batch.kind == ImportBatch.Kind.SCAN), None),
        rounds=chunks.filter(batch__kind=ImportBatch.Kind.SCAN).count(),
        workers=sorted(
            chunks.filter(state=ImportChunk.State.WORKING, lease_until__gt=Now())
            .exclude(batch__kind=ImportBatch.Kind.SCAN)
            .values_list("worker", flat=True)
            .distinct()
        ),
    )


def problem_lines(run: ImportRun) -> QuerySet[ImportLine]:
    """Return the lines that are neither posted nor waiting, in the order of the files."""
    lines = ImportLine.objects.filter(batch__run=run, state__in=PROBLEMS).select_related("batch")
    return lines.order_by("batch", "number")
