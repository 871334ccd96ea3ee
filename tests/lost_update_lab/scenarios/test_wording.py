"""Commands as people read them."""

from __future__ import annotations

import pytest

from lost_update_lab.scenarios.wording import readable


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ('UPDATE "shop_wallet" SET "balance" = %s ← 5', "UPDATE shop_wallet SET balance = 5"),
        ('EVAL return redis.call("GET", KEYS[1]) 1 k', 'EVAL return redis.call("GET", KEYS[1]) 1 k'),
    ],
)
def test_quotes_of_names_are_left_out_and_those_of_scripts_are_not(command: str, told: str) -> None:
    assert readable(command, "") == (told, "")
