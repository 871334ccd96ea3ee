"""`manage.py import FILE…`: the admin's import, from the command line.

The command first stores the lines, and then its workers post them. Running background workers help. After Ctrl-C
nothing is lost: the background workers finish the import, or a user stops or retries it in the admin.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections, transaction

from ledger.imports import apply, chunks
from ledger.imports.progress import BatchProgress, ImportProgress, problem_lines, progress
from ledger.imports.upload import Upload, open_book_for, start_import
from ledger.imports.ways import Way
from ledger.models import Book, ImportRun
from ledger.posting import NotConfigured

PAUSE = 0.1  # seconds until the next look at a chunk that another worker holds or that met a busy account
PROBLEMS_TOLD = 20


class Command(BaseCommand):
    help = (
        "Import CSV files (seller,account,amount,reference) into a book. Exit code 0: every line is posted, now or"
        " before. 1: some lines are not. 2: bad usage."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        into = parser.add_mutually_exclusive_group()
        into.add_argument("--book", metavar="ID", help="an open book (default: a new one)")
        into.add_argument(
            "--strategy",
            metavar="SLUG",
            default="select-for-update",
            help="strategy of the new book (%(default)s)",
        )
        parser.add_argument(
            "--opening", type=int, default=0, help="opening balance of each account of the new book (0)"
        )
        parser.add_argument(
            "--way",
            choices=Way.values,
            default=Way.LINE_BY_LINE.value,
            help="line by line with the book's strategy, or set-based: thousands of lines in one transaction",
        )
        parser.add_argument("--workers", type=int, default=4, help="chunks processed at the same time (4)")
        parser.add_argument(
            "--all-or-nothing", action="store_true", help="a file with one bad line posts nothing"
        )
        parser.add_argument("--json", action="store_true", help="print the counts as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Raises CommandError, and SystemExit(1) if a line is not posted."""
        if not 1 <= options["workers"] <= 16:
            raise CommandError("--workers must be 1 to 16", returncode=2)
        uploads = [_read(path) for path in options["files"]]
        if sum(len(each.content) for each in uploads) > settings.IMPORT_MAX_BYTES:
            raise CommandError(
                f"the files have more than {settings.IMPORT_MAX_BYTES:,} bytes: import them one by one",
                returncode=2,
            )
        try:
            run = _start(uploads, options)
        except (ValueError, NotConfigured) as error:
            raise CommandError(str(error), returncode=2) from error
        _work_off(run)
        run.refresh_from_db()
        found = progress(run)
        if options["json"]:
            self.stdout.write(json.dumps(_figures(found), indent=2))
        else:
            self._tell(found)
        if not all(_right(each) for each in found.files):
            raise SystemExit(1)

    def _tell(self, found: ImportProgress) -> None:
        run = found.run
        self.stdout.write(
            f"{run} into book {run.book_id} ({run.book.strategy}), {run.get_way_display()}: {found.posted:,} of"
            f" {found.total:,} lines posted in {found.seconds:.1f} s"
        )
        for each in found.files:
            told = [f"{count:,} {word}" for word, count in each.problems]
            told += [each.batch.problem] if each.batch.problem else []
            self.stdout.write(f"  {each.batch.name}: {', '.join([f'{each.posted:,} posted', *told])}")
        problems = problem_lines(run)
        for line in problems[:PROBLEMS_TOLD]:
            self.stdout.write(f"  {line.batch.name}, line {line.number}: {line.problem}")
        if (left := problems.count() - PROBLEMS_TOLD) > 0:
            self.stdout.write(f"  and {left:,} more")


def _read(path: Path) -> Upload:
    try:
        return Upload(path.name, path.read_bytes())
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}", returncode=2) from error


@transaction.atomic  # no new book without its import
def _start(uploads: list[Upload], options: dict[str, Any]) -> ImportRun:
    """Raises ValueError."""
    if options["book"]:
        book = _book(options["book"])
    else:
        names = ", ".join(upload.name for upload in uploads)
        book = open_book_for(uploads, options["strategy"], options["opening"], name=f"import: {names}"[:100])
    return start_import(
        book,
        uploads,
        workers=options["workers"],
        way=options["way"],
        all_or_nothing=options["all_or_nothing"],
        scan=False,
    )


def _book(asked: str) -> Book:
    try:
        found = Book.objects.filter(pk=UUID(asked)).first()
    except ValueError:
        found = None
    if found is None:
        raise ValueError(f"no book {asked}: give the id that the admin's list of books shows")
    return found


def _work_off(run: ImportRun) -> None:
    """Work until the run is finished, by this command or by background workers."""
    with ThreadPoolExecutor(run.workers, thread_name_prefix="import") as threads:
        list(threads.map(_lane, [run.pk] * run.workers, range(1, run.workers + 1)))


def _lane(run_id: int, lane: int) -> None:
    try:
        while not ImportRun.objects.filter(pk=run_id).exclude(finished=None).exists():
            chunk = chunks.claim(run_id, lane)
            if chunk is None:
                time.sleep(PAUSE)
                continue
            left = apply.work(chunk)
            chunks.give_back(chunk, later=PAUSE if left else 0.0)
    finally:
        connections.close_all()


def _right(file: BatchProgress) -> bool:
    """Is every line of the file posted, now or by an earlier import?"""
    if file.batch.state == file.batch.State.DUPLICATE:
        return True
    return bool(file.total) and file.posted + file.counts.get("known", 0) == file.total


def _figures(found: ImportProgress) -> dict[str, Any]:
    return {
        "import": found.run.pk,
        "book": str(found.run.book_id),
        "strategy": found.run.book.strategy,
        "way": found.run.way,
        "lines": found.total,
        "posted": found.posted,
        "seconds": round(found.seconds, 3),
        "files": [
            {
                "name": each.batch.name,
                "state": each.batch.state,
                "problem": each.batch.problem,
                "lines": each.counts,
            }
            for each in found.files
        ],
    }
