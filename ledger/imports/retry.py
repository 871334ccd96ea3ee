"""Try again what was refused, stayed busy or ended in an error: the same lines with the same keys."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from ledger.imports.jobs import wake
from ledger.models import Book, ImportBatch, ImportChunk, ImportLine, ImportRun


def try_again(run: ImportRun) -> int:
    """Set the run's retriable lines back to waiting and wake its lanes. Returns how many lines.

    A line whose reference another line of the book holds by now stays as it is, and with it all lines of a file that
    is posted whole or not at all. 0 while the run works: it may be writing the very lines.
    """
    with transaction.atomic():
        if not ImportRun.objects.select_for_update().get(pk=run.pk).finished:
            return 0
        Book.objects.select_for_update().get(pk=run.book_id)  # as an upload: a line's key has one owner
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
