"""Which columns of times a command compares: there, the time that is written in them decides. And where it does not."""

from __future__ import annotations

import pytest

from lost_update_lab.servers.mariadb import clock_words as mariadb
from lost_update_lab.servers.postgres import clock_words as postgres
from lost_update_lab.servers.stamps import compared

COMPARED = {
    "SELECT id FROM event WHERE made > %s": {"made"},
    "SELECT id FROM event e JOIN mark m ON e.made > m.at": {"made", "at"},
    "SELECT kind FROM event GROUP BY kind HAVING min(made) > %s": {"made"},
    "SELECT balance FROM entry ORDER BY made DESC LIMIT 1": {"made"},
    "SELECT balance FROM entry ORDER BY `made` DESC LIMIT 1": {"made"},
    "SELECT max(made) FROM event": {"made"},
    "INSERT INTO seen VALUES (1) ON CONFLICT (id) DO UPDATE SET made = now() WHERE seen.at < now()": {"at"},
    "WITH one AS (UPDATE event SET n = 2 WHERE made < (SELECT max(id) FROM (SELECT 1) x)) SELECT at FROM one": {
        "made"
    },
    "WITH one AS (UPDATE event SET n = 2 WHERE id = 1) INSERT INTO entry (made) SELECT id FROM one": set(),
    "WITH one AS (SELECT 1 WHERE name = ')' AND made > 3) SELECT at FROM one": {"made"},
    r"WITH one AS (SELECT 1 WHERE name = '\')' AND made > 3) SELECT at FROM one": {"made", "at"},
    "SELECT made FROM event ORDER BY made": set(),
    "UPDATE event SET made = now()": set(),
    "INSERT INTO seen VALUES (1) ON CONFLICT (id) DO UPDATE SET made = now()": set(),
    "INSERT INTO seen VALUES (1) ON DUPLICATE KEY UPDATE made = NOW()": set(),
}


@pytest.mark.parametrize("text", COMPARED)
def test_what_is_compared(text: str) -> None:
    assert compared({"made", "at"}, text) == COMPARED[text]


@pytest.mark.parametrize(
    ("body", "decides"),
    [
        ("INSERT INTO log VALUES (1, NOW()); UPDATE job SET seen = NOW() WHERE id = 1;", False),
        ("SET t = NOW(); UPDATE hold SET until = t WHERE until < t;", True),
        ("INSERT INTO log (made) VALUES (1); SET t = NOW();", True),
        ("UPDATE hold SET seat = 2 WHERE until < NOW();", True),
    ],
)
def test_a_variable_of_a_routine_may_be_compared_later(body: str, decides: bool) -> None:
    assert mariadb.decides(f"BEGIN {body} END") is decides
    assert postgres.decides(f"BEGIN {body.replace('SET t =', 't :=')} END") is decides


def test_what_a_trigger_writes_into_the_row_is_written_down() -> None:
    """On MariaDB it counts, as the clock is virtual there by a command in each session."""
    trigger = "BEGIN INSERT INTO log VALUES (1); SET NEW.seen = NOW(); END"
    assert mariadb.decides(trigger)
    assert not postgres.decides(trigger.replace("SET ", ""))
    assert not postgres.decides(trigger.replace("SET ", "").replace("=", ":="))
