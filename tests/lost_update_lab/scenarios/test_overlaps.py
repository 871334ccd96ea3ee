"""Under SERIALIZABLE the order of reads and inserts counts, though the tables do not show it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import IsolationLevel

from lost_update_lab import Result
from lost_update_lab.under_test.operations import VIOLATED
from tests.lost_update_lab.scenarios.test_under_way import Operation, opened

SCHEMA = """
DROP TABLE IF EXISTS payer, bill CASCADE;
CREATE TABLE payer (id int PRIMARY KEY, paid int NOT NULL DEFAULT 0);
CREATE TABLE bill (id int PRIMARY KEY, payer int REFERENCES payer DEFERRABLE INITIALLY DEFERRED);
INSERT INTO payer VALUES (1), (2);
INSERT INTO bill VALUES (10, 1);
"""


def transactions(*each: tuple[str, ...]) -> Operation:
    """Returns the error of the last one, which fails or is rolled back."""

    def operation(sql: Any) -> str:
        sql.isolation_level = IsolationLevel.SERIALIZABLE
        for queries in each:
            try:
                with sql.transaction(force_rollback="ROLLBACK" in queries):
                    for query in queries:
                        if query != "ROLLBACK":
                            sql.execute(query)
            except psycopg.Error as error:
                return type(error).__name__
        return ""

    return operation


@pytest.mark.deep
def test_a_page_of_an_index_that_was_read_before_the_insert(trial: Callable[..., Result]) -> None:
    """Ann has read the page into which Bob inserts, and Bob reads what Ann has changed: she fails, although Bob has
    not committed that. With the insert first she does not, and the two orders were one state."""
    ann = transactions(
        ("UPDATE bill SET payer = 3 WHERE id = 10", "UPDATE payer SET paid = 1 WHERE id = 2", "ROLLBACK")
    )
    bob = transactions(
        ("INSERT INTO bill VALUES (21, 1)",),
        ("INSERT INTO payer VALUES (3)", "DELETE FROM payer WHERE id = 1"),
    )

    def not_both(ann: str, bob: str) -> bool:
        return (ann, bob) != ("SerializationFailure", "ForeignKeyViolation")

    result = trial([ann, bob], setup=opened(SCHEMA), invariant=not_both, control=False)
    assert result.verdict == VIOLATED, str(result)


def reports(sql: Any) -> int:
    """Waits until no transaction that writes could make its look wrong: for no lock."""
    with sql.transaction():
        sql.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE")
        (paid,) = sql.execute("SELECT sum(paid) FROM payer").fetchone()
    return int(paid)


def test_a_deferrable_transaction_waits_for_those_that_write(trial: Callable[..., Result]) -> None:
    moves = transactions(
        ("UPDATE payer SET paid = paid - 1 WHERE id = 1", "UPDATE payer SET paid = paid + 1 WHERE id = 2")
    )
    result = trial([reports, moves], setup=opened(SCHEMA), control=False)
    assert (result.verdict, result.exhausted) == ("kept", True), str(result)
