"""An invariant that asks MariaDB's clock, while the workers' is virtual."""

from __future__ import annotations

import pytest

from lost_update_lab import worker
from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.conftest import Trial


def hold_table() -> None:
    shop.ask("DROP TABLE IF EXISTS hold")
    shop.ask("CREATE TABLE hold (id INT PRIMARY KEY, who VARCHAR(9), until DATETIME)")
    shop.ask("INSERT INTO hold VALUES (1, '', '2020-01-01')")
    shop.ask("CREATE OR REPLACE VIEW live AS SELECT * FROM hold WHERE until > NOW()")


def takes(who: str) -> None:
    shop.ask("UPDATE hold SET who = %s, until = NOW() + INTERVAL -1 SECOND WHERE until < NOW()", who)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("where", ["hold WHERE until > NOW()", "live"])
def test_it_is_not_believed(trial: Trial, where: str) -> None:
    """A hold that had ended when it was given lasted for years."""

    def is_held() -> bool:
        query = f"SELECT (SELECT count(*) FROM {where}) = 1 OR max(who) = '' FROM hold"
        return bool(shop.ask(query)[0][0])

    workers = [worker("Ann", takes, "Ann"), worker("Bob", takes, "Bob")]
    result = trial(workers, setup=hold_table, invariant=is_held, control=False)
    assert result.verdict == "inconclusive"
    assert result.cause.startswith("the invariant asks for the time (")
