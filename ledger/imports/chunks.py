"""Which worker has which chunk, and until when. The database's clock decides, so the workers' clocks do not matter.

    A: claim chunk 7, token 1, lease 15 s … 20 lines … renew … SIGKILL
    B:                                                   (lease over)  claim chunk 7, token 2 … the lines left

The lease saves work but protects nothing. If A was only slow, A and B meet on one line, and the line's key decides:
`ledger.books.post` answers the second request with the first one's entry. Once B has claimed the chunk (the token has
moved on), A's reports about it are ignored, except that a line is posted: that is a fact and is kept. A may still post
lines that B gets another answer for, so those lines are in doubt until they are posted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.conf import settings
from django.db import Error, connections, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Now

from ledger.models import ImportBatch, ImportChunk, ImportLine, ImportRun
from ledger.posting import worker

log = logging.getLogger(__name__)
State = ImportChunk.State
#: the lane of the scheduled scan; the lanes of files start at 1
SCAN_LANE = 0


def open_chunks(run_id: int, lane: int) -> QuerySet[ImportChunk]:
    """Return the chunks that a worker of this lane may claim now, in the order of work.

    The number comes before the batch: all files advance together, as they would from several sellers at once.
    """
    kind = ImportBatch.Kind.SCAN if lane == SCAN_LANE else ImportBatch.Kind.FILE
    free = Q(state=State.WAITING, not_before__lte=Now()) | Q(state=State.WORKING, lease_until__lte=Now())
    return ImportChunk.objects.filter(
        free, batch__run=run_id, batch__kind=kind, batch__state=ImportBatch.State.RUNNING
    ).order_by("number", "batch_id")


def claim(run_id: int, lane: int) -> ImportChunk | None:
    """Claim a chunk for this worker and return it. None: nothing to do, or the lane has a live worker."""
    with transaction.atomic():
        held = ImportChunk.objects.filter(
            batch__run=run_id, lane=lane, state=State.WORKING, lease_until__gt=Now()
        )
        if held.exists():
            return None
        free = open_chunks(run_id, lane).select_related("batch__book", "batch__run")
        chunk = free.select_for_update(skip_locked=True, of=("self",)).first()
        if chunk is None:
            return None
        if chunk.state == State.WORKING:  # its worker is dead or only slow
            chunk.lines.exclude(state=ImportLine.State.POSTED).update(doubt=True)
        chunk.token += 1
        ImportChunk.objects.filter(pk=chunk.pk).update(
            state=State.WORKING, lane=lane, worker=worker(), token=chunk.token, lease_until=_lease(chunk)
        )
    return chunk


def renew(chunk: ImportChunk) -> bool:
    """Extend the lease. Returns False if another worker has claimed the chunk meanwhile."""
    return bool(ImportChunk.objects.filter(pk=chunk.pk, token=chunk.token).update(lease_until=_lease(chunk)))


def claimed(chunk: ImportChunk) -> bool:
    """Is the claim still the current one? If so, it stays so until the end of the caller's transaction."""
    mine = ImportChunk.objects.select_for_update().filter(pk=chunk.pk, token=chunk.token)
    return mine.first() is not None


@contextmanager
def kept(chunk: ImportChunk) -> Iterator[None]:
    """Renew the lease while the body runs, however long one posting of a whole file takes. A thread does it. The
    thread opens a session of its own once a third of the lease is over."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(settings.IMPORT_LEASE / 3):
            try:
                if not renew(chunk):
                    break
            except (
                Error
            ):  # try again soon; a worker that takes the chunk over meanwhile marks its lines as in doubt
                log.warning("the claim of %s was not renewed", chunk, exc_info=True)
                connections.close_all()
        connections.close_all()

    thread = threading.Thread(target=work, name=f"claim-{chunk.pk}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _lease(chunk: ImportChunk) -> Combinable:
    """Return the end of the lease. It outlasts one posting of a patient book, or its answer would never count."""
    patience = chunk.batch.book.settings.get("timeout") or 0.0
    return Now() + timedelta(seconds=settings.IMPORT_LEASE + patience)


def give_back(chunk: ImportChunk, *, later: float = 0.0) -> None:
    """End the claim. The chunk is done if none of its lines waits, otherwise it is free in `later` seconds."""
    waiting = Exists(ImportLine.objects.filter(chunk=OuterRef("pk"), state=ImportLine.State.WAITING))
    mine = ImportChunk.objects.filter(pk=chunk.pk, token=chunk.token)
    if not mine.filter(~waiting).update(state=State.DONE, lane=None, lease_until=None):
        mine.update(
            state=State.WAITING, lane=None, lease_until=None, not_before=Now() + timedelta(seconds=later)
        )
    close(chunk.batch.run)


def close(run: ImportRun) -> bool:
    """Mark the finished batches of the run, and the run itself, as finished. Returns True if the run is."""
    with transaction.atomic():
        ImportRun.objects.select_for_update().get(
            pk=run.pk
        )  # of the last two workers, the second one sees all rows
        unfinished = Exists(ImportChunk.objects.filter(batch=OuterRef("pk")).exclude(state=State.DONE))
        running = ImportBatch.objects.filter(run=run, state=ImportBatch.State.RUNNING)
        running.filter(~unfinished, kind=ImportBatch.Kind.FILE).update(state=ImportBatch.State.FINISHED)
        if running.filter(Q(kind=ImportBatch.Kind.FILE) | unfinished).exists():
            return False
        running.update(state=ImportBatch.State.FINISHED)
        ImportRun.objects.filter(pk=run.pk, finished=None).update(finished=Now())
    return True
