"""On MariaDB too, what waits for ever is ended in time, and what nobody gives back is said, and taken away."""

from __future__ import annotations

import os
from typing import Any

import pymysql
import pytest

from lost_update_lab.scenarios import mistakes
from lost_update_lab.snapshot import mariadb as snapshot
from lost_update_lab.under_test.mariadb import parameters
from lost_update_lab.under_test.scenario import Mistake
from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.conftest import Trial
from tests.lost_update_lab.mariadb.test_public import both

SHORT = 1


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mistakes, "SETUP_WITHIN", SHORT)
    monkeypatch.setattr(snapshot, "PATIENCE", SHORT)


def in_a_transaction(held: list[Any], command: str) -> None:
    held.append(pymysql.connect(**parameters(os.environ["DATABASE_URL"])))
    with held[-1].cursor() as cursor:
        cursor.execute(command)


@pytest.mark.deep
def test_an_invariant_that_stays_in_a_transaction(trial: Trial) -> None:
    held: list[Any] = []

    def looks() -> None:
        if not held:
            in_a_transaction(held, "SELECT * FROM voucher")

    with pytest.raises(Mistake, match="a session that is no worker's has locked it"):
        trial(both(shop.redeem_locked), invariant=looks)
    held[0].close()


def test_a_setup_that_waits_for_its_own_lock(trial: Trial) -> None:
    held: list[Any] = []

    def waits_for_itself() -> None:
        shop.open_shop()
        for _ in range(2):
            in_a_transaction(held, "UPDATE voucher SET uses = 7")

    with pytest.raises(
        Mistake, match=r"it waits for an answer of MariaDB at test_in_time.py:\d+: cursor.exec"
    ):
        trial(both(shop.redeem_locked), setup=waits_for_itself, budget=SHORT)
    for connection in held:
        connection.close()
