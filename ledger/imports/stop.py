"""Stop an import: what is posted stays posted, and no worker takes up the rest until a user retries it.

A: claim chunk 7, token 1 … line 20 … (waits for a lock that nobody will ever release)
stop: chunk 7 is done, token 2; its lines without an answer are "stopped"
A:                                   … line 20 is posted after all (a fact: it is noted); its other lines are not
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import F

from ledger.imports.chunks import close
from ledger.models import ImportChunk, ImportLine, ImportRun


def stop(run: ImportRun) -> int:
    """End the run now. Returns the number of lines without an answer; they can be tried again."""
    with transaction.atomic():
        if ImportRun.objects.select_for_update().get(pk=run.pk).finished:
            return 0
        chunks = ImportChunk.objects.filter(batch__run=run).exclude(state=ImportChunk.State.DONE)
        working = [
            chunk.pk
            for chunk in chunks.select_for_update(of=("self",))
            if chunk.state == ImportChunk.State.WORKING
        ]
        chunks.update(state=ImportChunk.State.DONE, lane=None, lease_until=None, token=F("token") + 1)
        ImportLine.objects.filter(chunk__in=working).exclude(state=ImportLine.State.POSTED).update(doubt=True)
        # filtered by the line's own columns, not by a join: PostgreSQL then rechecks a line reported just now
        waiting = ImportLine.objects.filter(batch__in=run.batches.all(), state=ImportLine.State.WAITING)
        left = waiting.update(state=ImportLine.State.STOPPED)
        close(run)
        ImportRun.objects.filter(pk=run.pk).update(stopped=True)
    return left
