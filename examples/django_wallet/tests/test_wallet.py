"""The broken operations fail with the smallest order that breaks them; the mended ones are exhausted."""

import pytest
from django.test import Client
from wallet.models import Redemption, Voucher, Wallet
from wallet.services import (
    TooLate,
    redeem,
    redeem_behind_the_cache,
    redeem_locked,
    redeem_once_added,
    transfer,
    transfer_in_place,
)

from lost_update_lab.invariants import balance_conserved
from lost_update_lab.scenarios.race import NotKept

pytestmark = pytest.mark.django_db(transaction=True)


def two_users(race, operation):
    race.setup(lambda: Voucher.objects.create(code="XMAS", left=1))
    race.worker("Ann", operation, "XMAS", user=1)
    race.worker("Bob", operation, "XMAS", user=2)
    race.invariant(lambda: Redemption.objects.count() <= 1, "a voucher with one use was used twice")


def test_a_voucher_is_redeemed_twice(race):
    two_users(race, redeem)
    with pytest.raises(NotKept, match="a voucher with one use was used twice") as broken:
        race.explore(crashes=1)
    told = str(broken.value)
    assert "wallet/services.py:21  voucher.save()" in told
    assert "wallet_voucher[1].left: 1 → 0" in told


def test_a_voucher_is_redeemed_once(race):
    two_users(race, redeem_locked)
    result = race.explore(crashes=1)
    assert result.exhausted


def test_at_which_isolation_level(race):
    """The setup runs once for each level, and finds each time what it found first."""
    race.setup(lambda: Voucher.objects.get_or_create(code="XMAS", defaults={"left": 1}))
    race.worker("Ann", redeem, "XMAS", user=1)
    race.worker("Bob", redeem, "XMAS", user=2)
    race.invariant(lambda: Redemption.objects.count() <= 1, "a voucher with one use was used twice")
    with pytest.raises(NotKept, match="read-committed: a voucher with one use was used twice") as broken:
        race.explore(isolation=["serializable", "read committed"])
    assert [part.verdict for part in broken.value.result.parts] == ["kept", "violated"]


def test_transfers_lose_money(race):
    """No invariant is written: the outcome must be that of some serial order."""
    race.setup(
        lambda: Wallet.objects.bulk_create(
            [Wallet(owner="Ann", balance=100), Wallet(owner="Bob", balance=100)]
        )
    )
    race.worker("there", transfer, "Ann", "Bob", 10)
    race.worker("back", transfer, "Bob", "Ann", 30)
    with pytest.raises(NotKept, match="no serial order"):
        race.explore()


def test_transfers_keep_money(race):
    race.setup(
        lambda: Wallet.objects.bulk_create(
            [Wallet(owner="Ann", balance=100), Wallet(owner="Bob", balance=100)]
        )
    )
    race.worker("there", transfer_in_place, "Ann", "Bob", 10)
    race.worker("back", transfer_in_place, "Bob", "Ann", 30)
    race.invariant(balance_conserved("wallet_wallet.balance"))
    assert race.explore(crashes=1).exhausted


def over_http(race, query):
    def post(user):
        return Client().post(f"/redeem/XMAS/{user}/{query}")

    race.setup(lambda: Voucher.objects.create(code="XMAS", left=1))
    race.worker("Ann", post, 1)
    race.worker("Bob", post, 2)
    race.invariant(lambda a, b: [a.status_code, b.status_code].count(200) == 1, "not exactly one was served")


def test_two_requests_at_once(race):
    over_http(race, "")
    with pytest.raises(NotKept, match="not exactly one was served"):
        race.explore()


def test_two_requests_at_once_with_the_row_locked(race):
    over_http(race, "?locked")
    race.explore()


def one_user_twice(race, operation):
    race.setup(lambda: Voucher.objects.create(code="XMAS", left=9))
    race.worker("first click", operation, "XMAS", user=1)
    race.worker("second click", operation, "XMAS", user=1)


def test_a_cache_that_is_looked_at_and_then_written(race):
    one_user_twice(race, redeem_behind_the_cache)
    with pytest.raises(NotKept, match="no serial order"):
        race.explore()


def test_a_cache_that_is_added_to(race):
    one_user_twice(race, redeem_once_added)
    race.explore()


def test_who_is_too_late_is_told_so(race):
    race.setup(lambda: Voucher.objects.create(code="XMAS", left=1))
    race.worker("Ann", redeem_locked, "XMAS", user=1)
    race.worker("Bob", redeem_locked, "XMAS", user=2)
    race.invariant(
        lambda a, b: isinstance(a, TooLate) ^ isinstance(b, TooLate), "not exactly one came too late"
    )
    race.explore()
