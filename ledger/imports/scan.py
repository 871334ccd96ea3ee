"""The scheduled scan: it charges the busiest accounts of a running import, as the hot-account article's job does (A1).

A round of the scan is a chunk of the run's scan batch, so it is resumed, reported and reconciled like a file.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models import Count

from ledger.imports.chunks import SCAN_LANE
from ledger.imports.jobs import enqueue
from ledger.models import ImportBatch, ImportChunk, ImportLine, ImportRun

HOT_ACCOUNTS = 8
FEE = -1  # minor units


def scan_running_imports() -> int:
    """Start a round in each running import with a scan. Returns the number of rounds started."""
    return sum(start_round(run) for run in ImportRun.objects.filter(finished=None, scan=True))


def start_round(run: ImportRun) -> bool:
    """Append a round to the run's scan, unless the files are done or the previous round is still running."""
    with transaction.atomic():
        ImportRun.objects.select_for_update().get(
            pk=run.pk
        )  # `close` holds this lock: no round after the end
        batches = run.batches.filter(state=ImportBatch.State.RUNNING)
        scan = batches.filter(kind=ImportBatch.Kind.SCAN).first()
        if scan is None or not batches.filter(kind=ImportBatch.Kind.FILE).exists():
            return False
        rounds = scan.chunks.count()
        if scan.chunks.exclude(state=ImportChunk.State.DONE).exists():
            return False
        chunk = ImportChunk.objects.create(batch=scan, number=rounds + 1)
        ImportLine.objects.bulk_create(
            ImportLine(
                batch=scan,
                book_id=run.book_id,
                chunk=chunk,
                number=rounds * HOT_ACCOUNTS + place,
                seller="scheduled scan",
                account=account,
                amount=FEE,
                reference=f"round {chunk.number}",
                key=f"scan/{run.pk}/{chunk.number}/{account}",
            )
            for place, account in enumerate(hot_accounts(run), start=1)
        )
        enqueue(run.pk, SCAN_LANE)
    return True


def hot_accounts(run: ImportRun) -> list[str]:
    """Return the accounts with the most lines in the run's files."""
    lines = ImportLine.objects.filter(batch__run=run, batch__kind=ImportBatch.Kind.FILE, chunk__isnull=False)
    counted = lines.values("account").annotate(lines=Count("pk")).order_by("-lines", "account")
    return [row["account"] for row in counted[:HOT_ACCOUNTS]]
