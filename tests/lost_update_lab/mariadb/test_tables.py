"""On MariaDB, too, operations that make, alter or drop tables are not judged: the next schedule would find them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.under_test.scenario import Mistake
from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.conftest import Trial

TAKE = "UPDATE voucher SET uses = uses - 1"


def opened() -> None:
    shop.open_shop()
    shop.ask("DROP PROCEDURE IF EXISTS makes")
    shop.ask("CREATE PROCEDURE makes() CREATE INDEX uses ON voucher (uses)")


def sends(*commands: str) -> Callable[[], None]:
    def operation() -> None:
        with shop.connect(autocommit=True) as connection, connection.cursor() as cursor:
            for command in commands:
                cursor.execute(command)

    return operation


@pytest.mark.deep_after(4)
@pytest.mark.parametrize(
    "commands",
    [
        ["CREATE UNIQUE INDEX IF NOT EXISTS one_use ON redemption (code)"],
        ["DROP INDEX IF EXISTS code ON redemption"],
        ["/* anew */ create table if not exists newer (id int)"],
        ["BEGIN", "CALL makes()"],
        ["ALTER TABLE voucher ADD COLUMN IF NOT EXISTS more INT DEFAULT 0"],
        ["DROP TABLE IF EXISTS none, redemption"],
        ["CREATE OR REPLACE VIEW uses_left AS SELECT SUM(uses) FROM voucher"],
        ["GRANT SELECT ON voucher TO lab@localhost"],
    ],
)
def test_it_was_kept(trial: Trial, commands: list[str]) -> None:
    with pytest.raises(Mistake, match="puts rows back, and no tables") as mistake:
        trial([sends(*commands)] * 2, setup=opened)
    assert "make it in the setup" in str(mistake.value)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    "commands",
    [
        [
            "CREATE TABLE IF NOT EXISTS voucher (code INT)",
            "DROP TABLE IF EXISTS none",
        ],  # the setup has made it
        ["CREATE TEMPORARY TABLE mine (id INT)", "INSERT INTO mine VALUES (1)", "DROP TABLE mine"],
        ["SELECT 'CREATE TABLE newer (id int)'"],
    ],
)
def test_what_leaves_nothing_that_another_session_sees(trial: Trial, commands: list[str]) -> None:
    result = trial([sends(*commands, TAKE)] * 2, setup=opened, control=False)
    assert (result.verdict, result.exhausted) == (KEPT, True), str(result)
