"""What the setup writes as valid for a day is valid for the workers: their time begins where its time ended."""

from __future__ import annotations

import pytest

from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.conftest import Trial

TWICE = (lambda ann, bob: (ann, bob) != ("ok", "ok"), "redeemed twice")


def a_coupon() -> None:
    shop.ask("CREATE TABLE coupon (uses int, expires datetime)")
    shop.ask("INSERT INTO coupon VALUES (1, NOW() + INTERVAL 1 DAY)")


def redeem() -> str:
    found = shop.ask("SELECT uses FROM coupon WHERE expires > NOW()")
    if not found:
        return "expired"
    [(uses,)] = found
    if uses < 1:
        return "used up"
    shop.ask("UPDATE coupon SET uses = %s", uses - 1)
    return "ok"


@pytest.mark.deep
def test_a_coupon_that_is_valid_for_a_day(trial: Trial) -> None:
    assert trial([redeem] * 2, setup=a_coupon, invariant=TWICE).sentence == TWICE[1]
