"""The prepared cursor: parsed once a session, and as good after an error or a lost session as before."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction

from ledger.prepared import prepared

pytestmark = pytest.mark.usefixtures("committed_db")
PREPARED = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'SELECT 41 + %%'"


def plus(number: int) -> int:
    cursor = prepared(connection)
    cursor.execute("SELECT 41 + %s::int", [number])
    return int(cursor.fetchone()[0])


def count() -> int:
    with connection.cursor() as cursor:
        cursor.execute(PREPARED)
        return int(cursor.fetchone()[0])


def test_a_statement_is_prepared_once_a_session() -> None:
    connection.close()
    assert [plus(n) for n in range(3)] == [41, 42, 43]
    assert count() == 1
    connection.close()
    assert plus(1) == 42


def test_an_error_is_django_s_and_the_cursor_goes_on() -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        prepared(connection).execute("INSERT INTO ledger_bookowner (book_id) VALUES (NULL)")
    assert plus(1) == 42


def test_a_session_that_was_ended_is_replaced_where_django_looks() -> None:
    plus(1)
    ended = connection.connection.info.backend_pid
    connection.connection.close()
    connection.health_check_enabled, connection.health_check_done = True, False
    assert plus(1) == 42
    assert connection.connection.info.backend_pid != ended
