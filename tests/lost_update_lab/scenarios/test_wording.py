"""Commands as people read them."""

from __future__ import annotations

import pytest

from lost_update_lab.scenarios.wording import readable


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ('UPDATE "shop_wallet" SET "balance" = %s ← 5', "UPDATE shop_wallet SET balance = 5"),
        ("SET key \x80\x04\x00K\x01. NX", "SET key \\x80\\x04\\x00K\\x01. NX"),
        ('EVAL return redis.call("GET", KEYS[1]) 1 k', 'EVAL return redis.call("GET", KEYS[1]) 1 k'),
    ],
)
def test_a_command_is_one_line_of_what_can_be_printed(command: str, told: str) -> None:
    assert readable(command, "") == (told, "")
