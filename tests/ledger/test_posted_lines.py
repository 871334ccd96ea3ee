"""What the database does when a line becomes posted: it looks for the line's entry, and for nothing else."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection, transaction

from ledger.books import open_book
from ledger.imports import apply, chunks
from ledger.imports.upload import start_import
from ledger.models import Entry, ImportLine
from tests.ledger.test_imports import csv

pytestmark = pytest.mark.usefixtures("committed_db")
LINES = 100


def rows_read() -> int:
    """How many entries and accounts this transaction has read, its triggers included."""
    with connection.cursor() as cursor:
        for small in ("seqscan", "mergejoin", "hashjoin"):  # not taken where tables are not as small as here
            cursor.execute(f"SET LOCAL enable_{small} = off")
        cursor.execute(
            "SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_xact_user_tables"
            " WHERE relname IN ('ledger_entry', 'ledger_account')"
        )
        return int(cursor.fetchone()[0])


def test_reporting_a_whole_file_reads_as_much_as_it_has_lines_and_not_its_square():
    accounts = [f"A{n}" for n in range(LINES)]
    book = open_book("atomic-update", [(number, 0, None) for number in accounts])
    upload = csv(*(f"acme,{number},1,r-{number}" for number in accounts))
    chunk = chunks.claim(start_import(book, [upload], all_or_nothing=True, scan=False).pk, 1)
    lines = list(chunk.lines.all())
    apply._post_together(chunk, lines)
    with transaction.atomic():
        before = rows_read()
        apply.report(chunk, lines)
        read = rows_read() - before
    # an entry and an account for each line, and the few that the planner looks up at an index's ends (once the tables
    # have statistics: whether they have is up to autovacuum); each line looking at each entry would read 2 * LINES ** 2
    assert 2 * LINES <= read < LINES**2 / 4
    assert ImportLine.objects.filter(chunk=chunk, state="posted").count() == LINES


def test_a_line_of_a_whole_file_is_posted_only_by_its_own_accounts_entry():
    book = open_book("atomic-update", [("A", 0, None), ("B", 0, None)])
    upload = csv("acme,A,1,r1", "acme,B,2,r2")
    chunk = chunks.claim(start_import(book, [upload], all_or_nothing=True, scan=False).pk, 1)
    apply._post_together(chunk, list(chunk.lines.all()))
    of_a = Entry.objects.get(book=book, account__number="A").pk
    lines = ImportLine.objects.filter(chunk=chunk)
    for account, entry in (("B", of_a), ("A", None), ("A", book.pk)):
        with pytest.raises(DatabaseError, match="has no entry in the books"), transaction.atomic():
            lines.filter(account=account).update(state="posted", entry=entry)
    assert lines.filter(account="A").update(state="posted", entry=of_a) == 1
