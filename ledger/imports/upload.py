"""Store uploaded files as rows: a run, its batches, their chunks and lines, in one transaction with the run's jobs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.conf import settings
from django.db import transaction

from ledger.books import open_book
from ledger.imports.csvfile import FileLimits, Parsed, parse
from ledger.imports.jobs import wake
from ledger.imports.lines import ReadLine, judge, store
from ledger.imports.ways import SET_BASED_LINES, Way, check
from ledger.models import Book, ImportBatch, ImportChunk, ImportFile, ImportLine, ImportRun
from ledger.names import visible
from ledger.stores import store_of

#: how many bad lines of a file a refusal names
PROBLEMS_TOLD = 50


@dataclass(frozen=True)
class Upload:
    """One uploaded file. Invisible characters are removed from its name."""

    name: str
    content: bytes

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", visible(self.name))

    @cached_property
    def parsed(self) -> Parsed:
        return parse(self.content, FileLimits(settings.IMPORT_MAX_BYTES, settings.IMPORT_MAX_ROWS))


def open_book_for(uploads: Sequence[Upload], strategy: str, opening: int = 0, **options: Any) -> Book:
    """Open a new book with every account that the files name, each with `opening` minor units.

    `options` as for `open_book`. Raises ValueError if no file has a good line, or as `open_book` does.
    """
    accounts = sorted({line.account for upload in uploads for line in upload.parsed.good})
    if not accounts:
        raise nothing_to_import(uploads)
    return open_book(strategy, [(number, opening, None) for number in accounts], **options)


def nothing_to_import(uploads: Iterable[Upload]) -> ValueError:
    """Return an error that says why, with one line for each problem."""
    told = ["no file has a line that could be imported"]
    for each in uploads:
        told += [f"{each.name}: {problem}" for problem in _problems(each.parsed)]
    return ValueError("\n".join(told))


def _problems(parsed: Parsed) -> list[str]:
    if parsed.problem:
        return [parsed.problem]
    shown = [f"line {bad.number}: {bad.problem}" for bad in parsed.bad[:PROBLEMS_TOLD]]
    left = len(parsed.bad) - len(shown)
    return [*shown, f"and {left:,} more lines"] if left else shown


def start_import(
    book: Book,
    uploads: Iterable[Upload],
    *,
    workers: int = 4,
    way: str = Way.LINE_BY_LINE,
    all_or_nothing: bool = False,
    scan: bool = True,
    user: Any = None,
) -> ImportRun:
    """Store the files' lines and queue the run's jobs, all or nothing. Raises ValueError if the book does not support
    this way."""
    check(way, book)
    with transaction.atomic():
        Book.objects.select_for_update().get(pk=book.pk)  # one upload at a time: a line's key has one owner
        run = ImportRun.objects.create(
            book=book, workers=workers, way=way, all_or_nothing=all_or_nothing, scan=scan, started_by=user
        )
        accounts = {row.number for row in store_of(book).whole_accounts()}
        for upload in uploads:
            _store(run, upload, accounts)
        if scan:
            ImportBatch.objects.create(run=run, book=book, kind=ImportBatch.Kind.SCAN, name="scheduled scan")
        wake(run)
    return run


def stored(upload: Upload) -> ImportFile:
    """Return the stored content of `upload`: one row for the same bytes."""
    digest = hashlib.sha256(upload.content).hexdigest()
    file, _ = ImportFile.objects.get_or_create(sha256=digest, defaults={"content": upload.content})
    return file


def _store(run: ImportRun, upload: Upload, accounts: set[str]) -> None:
    file = stored(upload)
    batch = ImportBatch(run=run, book=run.book, name=upload.name[-200:], file=file)
    first = ImportBatch.objects.filter(book=run.book, file=file, state__in=ImportBatch.TAKEN).first()
    if first:
        batch.state, batch.duplicate_of = ImportBatch.State.DUPLICATE, first
        batch.problem = _came_before(first)
        batch.save()
        return
    parsed = upload.parsed
    lines = judge(run.book, parsed.good, parsed.bad, accounts)
    batch.problem = parsed.problem or _spoiled(run, lines)
    if batch.problem:
        batch.state = ImportBatch.State.REJECTED
        lines = [line for line in lines if not line.waits]
    elif run.all_or_nothing and not batch.set_based:
        batch.posting_key = f"import-file/{file.sha256[:40]}"
    batch.save()
    _save(batch, lines)


def _came_before(first: ImportBatch) -> str:
    where = f"({first.run}, {first.name})"
    if not first.run.finished or first.lines.filter(state=ImportLine.State.POSTED).exists():
        return f"the same file was imported before {where}: nothing is posted"
    return f"the same file was uploaded before {where}, and no line of it is posted: press “Try again” there"


def _spoiled(run: ImportRun, lines: list[ReadLine]) -> str:
    """Return why no line at all is posted, or ""."""
    wrong = [line for line in lines if not line.waits]
    if not wrong or not run.all_or_nothing:
        return "" if len(wrong) < len(lines) else "no line could be imported"
    first = f"line {wrong[0].number}: {wrong[0].problem}"
    return f"all or nothing: {len(wrong)} of {len(lines)} lines are not right. {first}"[:500]


def _save(batch: ImportBatch, lines: list[ReadLine]) -> None:
    """Store the lines, and assign the waiting ones to chunks."""
    waiting = [line for line in lines if line.waits]
    usual = SET_BASED_LINES if batch.set_based else settings.IMPORT_CHUNK_LINES
    size = len(waiting) if batch.run.all_or_nothing else usual
    starts = range(0, len(waiting), max(size, 1))
    chunks = ImportChunk.objects.bulk_create(
        ImportChunk(batch=batch, number=number) for number, _ in enumerate(starts, start=1)
    )
    for chunk, start in zip(chunks, starts, strict=True):
        for line in waiting[start : start + size]:
            line.chunk = chunk.pk
    store(batch, lines)
