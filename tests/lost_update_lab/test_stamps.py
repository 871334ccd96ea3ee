"""Which columns of times a command compares: there, the time that is written in them decides."""

from __future__ import annotations

import pytest

from lost_update_lab.servers.stamps import compared

COMPARED = {
    "SELECT id FROM event WHERE made > %s": {"made"},
    "SELECT id FROM event e JOIN mark m ON e.made > m.at": {"made", "at"},
    "SELECT kind FROM event GROUP BY kind HAVING min(made) > %s": {"made"},
    "SELECT balance FROM entry ORDER BY made DESC LIMIT 1": {"made"},
    "SELECT balance FROM entry ORDER BY `made` DESC LIMIT 1": {"made"},
    "SELECT max(made) FROM event": {"made"},
    "INSERT INTO seen VALUES (1) ON CONFLICT (id) DO UPDATE SET made = now() WHERE seen.at < now()": {"at"},
    "SELECT made FROM event ORDER BY made": set(),
    "UPDATE event SET made = now()": set(),
    "INSERT INTO seen VALUES (1) ON CONFLICT (id) DO UPDATE SET made = now()": set(),
    "INSERT INTO seen VALUES (1) ON DUPLICATE KEY UPDATE made = NOW()": set(),
}


@pytest.mark.parametrize("text", COMPARED)
def test_what_is_compared(text: str) -> None:
    assert compared({"made", "at"}, text) == COMPARED[text]
