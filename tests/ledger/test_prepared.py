"""A prepared statement: parsed once a session, and as good after an error or a lost session as before."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DataError, IntegrityError, connection, transaction
from django.db.transaction import TransactionManagementError

from ledger.stores.prepared import Prepared

pytestmark = pytest.mark.usefixtures("committed_db")
HELD = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE 'SELECT 41 + %%'"
PLUS = Prepared("plus", "SELECT 41 + %(number)s, %(number)s + 1", number="int")
OWNER = Prepared("owner", "INSERT INTO ledger_bookowner (book_id) VALUES (%(book)s)", book="uuid")
SAID = Prepared("said", "SELECT %(said)s", said="text")
NOBODY = {"book": "00000000000000000000000000000000"}


def plus(number: int) -> int:
    return int(PLUS.rows(connection, {"number": str(number)})[0][0])


def count() -> int:
    with connection.cursor() as cursor:
        cursor.execute(HELD)
        return int(cursor.fetchone()[0])


def test_a_statement_is_prepared_once_a_session() -> None:
    connection.close()
    assert [plus(n) for n in range(3)] == [41, 42, 43]
    assert count() == 1
    connection.close()
    assert plus(1) == 42


def test_nothing_is_prepared_behind_a_pooler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next transaction may be on another session."""
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "DISABLE_SERVER_SIDE_CURSORS", True)
    assert [plus(n) for n in range(3)] == [41, 42, 43]
    assert count() == 0


def test_an_error_is_django_s_and_the_next_is_as_before() -> None:
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        OWNER.rows(connection, NOBODY)
    assert caught.value.__cause__.sqlstate == "23502"  # type: ignore[union-attr]
    assert plus(1) == 42


def test_it_belongs_to_django_s_transaction() -> None:
    with transaction.atomic():
        plus(1)
        with connection.cursor() as cursor:
            cursor.execute("CREATE TABLE gone ()")
        transaction.set_rollback(True)
        with pytest.raises(TransactionManagementError):
            plus(1)
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('gone')")
        assert cursor.fetchone() == (None,)


def test_the_first_one_of_a_transaction_begins_it() -> None:
    with transaction.atomic():
        plus(1)
        assert connection.connection.info.transaction_status.name == "INTRANS"
    assert connection.connection.info.transaction_status.name == "IDLE"


def test_a_rollback_leaves_it_prepared() -> None:
    plus(1)
    with pytest.raises(IntegrityError), transaction.atomic():
        OWNER.rows(connection, NOBODY)
    assert (count(), plus(2)) == (1, 43)


def test_a_text_is_sent_whole_or_refused() -> None:
    for said in ("", "ü€", "'\\\"", "a" * 10_000):
        assert SAID.rows(connection, {"said": said})[0][0].decode() == said
    with pytest.raises(DataError, match="NUL"):
        SAID.rows(connection, {"said": "a\0b"})


def test_an_execute_wrapper_sees_it_and_the_answer_is_the_same() -> None:
    seen = []

    def look(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        seen.append((sql, list(params)))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(look):
        assert plus(1) == 42
    assert seen == [("SELECT 41 + $1::int, $1::int + 1", ["1"])]


def test_a_session_that_was_ended_is_replaced_where_django_looks() -> None:
    plus(1)
    ended = connection.connection.info.backend_pid
    connection.connection.close()
    connection.health_check_enabled, connection.health_check_done = True, False
    assert plus(1) == 42
    assert connection.connection.info.backend_pid != ended
