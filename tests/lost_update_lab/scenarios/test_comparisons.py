"""Pairs of operations, isolation levels, callers who try again."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from lost_update_lab import Mistake, explore, explore_isolation, explore_pairs, retrying
from lost_update_lab.scenarios.comparisons import row
from tests.lost_update_lab.scenarios.shop import one_voucher, redeem, redeem_locked
from tests.lost_update_lab.scenarios.test_explore import both


@pytest.fixture
def servers(scenario_urls: tuple[str, str]) -> dict[str, Any]:
    return {"database": scenario_urls[0], "redis": scenario_urls[1], "disposable": True, "setup": one_voucher}


def test_each_pair_and_each_with_itself(servers: dict[str, Any]) -> None:
    found = explore_pairs([(redeem, "XMAS", 1), (redeem_locked, "XMAS", 2)], **servers)
    assert {pair: result.verdict for pair, result in found.items()} == {
        ("redeem", "redeem"): "violated",
        ("redeem", "redeem_locked"): "violated",  # the one writer that takes no lock
        ("redeem_locked", "redeem_locked"): "kept",
    }


def test_isolation_levels(servers: dict[str, Any]) -> None:
    """READ COMMITTED loses; the stricter levels refuse the second one, which its caller has to try again."""
    found = explore_isolation(both(redeem), **servers)
    assert row(found) == "read committed: violated | repeatable read: refused | serializable: refused"
    assert "SerializationFailure" in found["serializable"].sentence


def test_a_caller_who_tries_again(servers: dict[str, Any]) -> None:
    again = retrying(redeem, psycopg.errors.SerializationFailure)
    assert explore(both(again), isolation="repeatable read", **servers).kept


def test_no_such_level(servers: dict[str, Any]) -> None:
    with pytest.raises(Mistake, match="there is no isolation level 'chaos': read committed"):
        explore(both(redeem), isolation="chaos", **servers)
