"""Retry the lines that were refused, stayed busy or ended in an error, with the same keys."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from ledger.imports.jobs import wake
from ledger.models import Book, ImportBatch, ImportChunk, ImportLine, ImportRun


def try_again(run: ImportRun) -> int:
    """Set the run's retriable lines back to waiting and wake its lanes. Returns the number of lines.

    A line stays as it is if another line of the book now holds its reference. So do then all lines of its file, if the
    file is all or nothing. Returns 0 while the run works, because it may be writing these lines.
    """
    with transaction.atomic():
        if not ImportRun.objects.select_for_update().get(pk=run.pk).finished:
            return 0
        Book.objects.select_for_update().get(pk=run.book_id)  # as an upload does: a line's key has one owner
        owner = ImportLine.objects.filter(
            book=OuterRef("book"), key=OuterRef("key"), state__in=ImportLine.TAKEN
        ).exclude(pk=OuterRef("pk"))
        retriable = ImportLine.objects.filter(state__in=ImportLine.RETRIABLE)
        lost = retriable.filter(Exists(owner), batch=OuterRef("batch"))
        whole = Q(batch__run__all_or_nothing=True, batch__kind=ImportBatch.Kind.FILE)
        lines = retriable.filter(~Exists(owner), ~whole | ~Exists(lost), batch__run=run)
        chosen = list(lines.values_list("pk", "chunk", "batch"))
        ids, in_chunks, in_batches = (
            (set(each) for each in zip(*chosen, strict=True)) if chosen else ((),) * 3
        )
        retriable.filter(pk__in=ids).update(state=ImportLine.State.WAITING, attempts=0, problem="")
        ImportChunk.objects.filter(pk__in=in_chunks).update(state=ImportChunk.State.WAITING)
        ImportBatch.objects.filter(pk__in=in_batches).update(state=ImportBatch.State.RUNNING)
        if chosen:
            ImportRun.objects.filter(pk=run.pk).update(finished=None, stopped=False)
            run.refresh_from_db()
            wake(run)
    return len(chosen)
