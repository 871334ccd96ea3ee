"""Process a chunk, line by line through the book's strategy or set-based. Each key is posted once, and each line gets
its outcome."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from ledger import metrics
from ledger.books import KeyReused, post
from ledger.imports.chunks import claimed, kept, renew
from ledger.imports.ways import post_set_based
from ledger.models import ImportChunk, ImportLine
from ledger.posting import BIGINT, Busy, Line, Posting, Refused, worker
from ledger.reconcile.rows import account_of

log = logging.getLogger(__name__)
State = ImportLine.State
#: how often a line is tried whose account is busy or that gets an error; then it is left to "try again"
MAX_ATTEMPTS = 5
#: one statement for thousands of lines: bulk_update would write a CASE for each line and each field
POSTED = """
UPDATE ledger_importline AS line SET state = 'posted', problem = p.problem, attempts = p.attempts, doubt = p.doubt,
    entry = p.entry, worker = p.worker, started = p.started, ended = p.ended
FROM unnest(%s::bigint[], %s::text[], %s::int[], %s::bool[], %s::uuid[], %s::text[], %s::timestamptz[],
    %s::timestamptz[]) AS p (id, problem, attempts, doubt, entry, worker, started, ended)
WHERE line.id = p.id AND line.state <> 'posted'
"""
REPORT_EVERY = 0.5  # seconds
RESULT_FIELDS = ("state", "problem", "attempts", "doubt", "entry", "worker", "started", "ended")
IN_DOUBT = "an earlier request may yet be applied; the last answer was: "


def work(chunk: ImportChunk, stop: Callable[[], bool] = lambda: False) -> bool:
    """Post the chunk's waiting lines. Returns True if some still wait (busy accounts, `stop`, or a lost lease)."""
    lines = list(chunk.lines.filter(state=State.WAITING).order_by("number"))
    if chunk.batch.posting_key or chunk.batch.set_based:
        with kept(chunk):
            answered = _post_together(chunk, lines) if chunk.batch.posting_key else _post_set(chunk, lines)
            if answered:
                report(chunk, lines)
                return any(line.state == State.WAITING for line in lines)
    tried: list[ImportLine] = []
    reported = time.monotonic()
    for line in lines:
        if stop():
            break
        _post(chunk, [line], line.key, {line.account: line.amount or 0})
        tried.append(line)
        if time.monotonic() - reported >= min(REPORT_EVERY, settings.IMPORT_LEASE / 3):
            report(chunk, tried)
            tried, reported = [], time.monotonic()
            if not renew(chunk):
                return True
    report(chunk, tried)
    return any(line.state == State.WAITING for line in lines)


def _post_together(chunk: ImportChunk, lines: list[ImportLine]) -> bool:
    """All or nothing: the file is one posting, with the sum of its lines for each account.

    The strategy applies a posting whole or not at all, so neither a crash nor a refusal leaves half a file. Without
    lines nothing is posted: a killed worker had reported them all, and the file's key must stay free.
    """
    if lines:
        sums: dict[str, int] = defaultdict(int)
        for line in lines:
            sums[line.account] += line.amount or 0
        _post(chunk, lines, chunk.batch.posting_key, dict(sums))
    return True


def _post_set(chunk: ImportChunk, lines: list[ImportLine]) -> bool:
    """Post the lines in one transaction.

    Returns False if one of them is refused. None is posted then, and to find out which one it is, each has to be posted
    by itself. Under all or nothing, the refusal is the answer to all of them.
    """
    refused: list[Refused | KeyReused] = []

    def ask() -> Callable[[ImportLine], UUID | None]:
        try:
            entries = post_set_based(chunk.batch.book, lines)
        except (Refused, KeyReused) as error:
            refused.append(error)
            raise Refused(f"all or nothing: {error}") from error
        return lambda line: entries[line.key].pk

    began = [(line.attempts, line.doubt) for line in lines]
    _answer(chunk, lines, f"{len(lines)} lines", ask)
    if not refused or chunk.batch.run.all_or_nothing:
        return True
    for line, (attempts, doubt) in zip(lines, began, strict=True):
        line.state, line.problem, line.attempts, line.doubt = State.WAITING, "", attempts, doubt
    return False


def _post(chunk: ImportChunk, lines: list[ImportLine], key: str, amounts: dict[str, int]) -> None:
    """Ask the ledger for one posting, and note the outcome on each of `lines`."""

    def ask() -> Callable[[ImportLine], UUID | None]:
        if any(abs(amount) > BIGINT for amount in amounts.values()):
            raise Refused("the sum of an account's lines leaves the range of BIGINT")
        done = post(chunk.batch.book, Posting(key, tuple(Line(*each) for each in amounts.items())))
        entries = {account_of(entry.account): entry.entry for entry in done.entries}
        return lambda line: entries.get(line.account)

    _answer(chunk, lines, key, ask)


def _answer(
    chunk: ImportChunk,
    lines: list[ImportLine],
    key: str,
    ask: Callable[[], Callable[[ImportLine], UUID | None]],
) -> None:
    """Call `ask` for the lines, and note the outcome on each. `ask` returns a function from a line to its entry.

    "Refused" and "busy" mean that this request is certainly not applied. For a line in doubt (an earlier request was
    never answered and may still be under way), the outcome stays unknown. A key that belongs to another posting is
    certain: it can never become this line's.
    """
    started, me = timezone.now(), worker()
    entry_of: Callable[[ImportLine], UUID | None] = lambda _: None  # noqa: E731
    state, problem, certain = State.POSTED, "", False
    try:
        entry_of = ask()
    except KeyReused as error:
        state, problem, certain = State.REFUSED, str(error), True
    except Refused as error:
        state, problem = State.REFUSED, str(error)
    except Busy as error:
        state, problem = State.BUSY, str(error)
    except Exception as error:  # after any other error the outcome is unknown, so ask again with the same key
        log.warning("%s: the outcome of %s is unknown", chunk, key, exc_info=True)
        state, problem = State.UNKNOWN, f"{type(error).__name__}: {error}"
    for line in lines:
        line.attempts += 1
        again = state in (State.BUSY, State.UNKNOWN) and line.attempts < MAX_ATTEMPTS
        doubted = line.doubt and not certain and state in (State.REFUSED, State.BUSY)
        line.doubt |= state == State.UNKNOWN
        line.state = State.WAITING if again else State.UNKNOWN if doubted else state
        line.problem = (f"{IN_DOUBT}{problem}" if doubted else problem).replace("\0", "")[:300]
        line.entry, line.ended = entry_of(line), timezone.now()
        line.started, line.worker = started, me


def report(chunk: ImportChunk, lines: list[ImportLine]) -> None:
    """Store the outcome of the lines.

    "Posted" is a fact, whichever worker reports it. Anything else counts only from the worker with the current claim,
    because the next worker may have posted the same line meanwhile. This report and a takeover or stop of the chunk
    exclude each other: one waits for the other.
    """
    posted = [line for line in lines if line.state == State.POSTED]
    others = [line for line in lines if line.state != State.POSTED]
    metrics.imported(line.state for line in lines if line.state != State.WAITING)
    if posted:
        _note_posted(posted)
    if others:
        with transaction.atomic():
            if claimed(chunk):
                mine = ImportLine.objects.filter(state=State.WAITING)
                mine.bulk_update(others, RESULT_FIELDS, batch_size=500)


def _note_posted(lines: list[ImportLine]) -> None:
    rows = [
        (each.pk, each.problem, each.attempts, each.doubt, each.entry, each.worker, each.started, each.ended)
        for each in lines
    ]
    with connection.cursor() as cursor:
        cursor.execute(POSTED, [list(column) for column in zip(*rows, strict=True)])
