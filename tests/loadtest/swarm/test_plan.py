"""Which store each strategy of a comparison is tried on, and that each store has a control of its own."""

from __future__ import annotations

from loadtest.swarm.compare import Comparison

STRATEGIES = ("no-lock", "setnx", "redis-atomic", "redis-watch", "repeatable-read-innodb")


def cases(**options: object) -> list[tuple[str, str]]:
    return [(case.strategy, case.store) for case in Comparison(strategies=STRATEGIES, **options).cases()]


def test_a_strategy_goes_to_its_own_store_beside_a_control() -> None:
    assert cases() == [
        ("no-lock", "postgres"),
        ("setnx", "postgres"),
        ("no-lock", "redis"),
        ("redis-atomic", "redis"),
        ("redis-watch", "redis"),
        ("no-lock", "mariadb"),
        ("repeatable-read-innodb", "mariadb"),
    ]


def test_a_store_that_was_asked_for_is_everyones() -> None:
    assert {store for _, store in cases(store="redis", own_store=False)} == {"redis"}
