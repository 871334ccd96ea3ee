"""Each schedule begins with the same rows, or the trial is refused: of a system-versioned table nothing was put back,
and no difference was seen."""

from __future__ import annotations

import pytest

from lost_update_lab import worker
from lost_update_lab.under_test.scenario import Mistake
from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.conftest import Trial


def sells(number: int) -> None:
    """A lost update."""
    left = shop.ask("SELECT left_over FROM stock WHERE id = 1")[0][0]
    shop.ask(f"UPDATE stock SET left_over = {left - number} WHERE id = 1")


def test_a_system_versioned_table_is_refused_by_its_name(trial: Trial) -> None:
    def opened() -> None:
        shop.open_shop()
        shop.ask("CREATE TABLE stock (id INT PRIMARY KEY, left_over INT) WITH SYSTEM VERSIONING")
        shop.ask("INSERT INTO stock VALUES (1, 10)")

    for _ in range(2):  # and nothing is left of it
        with pytest.raises(Mistake, match=r"the table stock cannot be put back .* the kind SYSTEM VERSIONED"):
            trial([worker("Ann", sells, 1), worker("Bob", sells, 2)], setup=opened)


def test_an_invisible_column_is_put_back(trial: Trial) -> None:
    """SELECT * does not name it: the trial ended in an error of the server."""

    def opened() -> None:
        shop.open_shop()
        shop.ask(
            "CREATE OR REPLACE TABLE stock (id INT PRIMARY KEY, left_over INT INVISIBLE, "
            "double_of INT AS (left_over * 2) STORED INVISIBLE)"
        )
        shop.ask("INSERT INTO stock (id, left_over) VALUES (1, 10)")

    result = trial([worker("Ann", sells, 1), worker("Bob", sells, 2)], setup=opened)
    assert result.verdict == "violated"
    assert "stock[1].left_over: 10 → " in str(result)
