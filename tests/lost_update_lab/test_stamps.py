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


WRITTEN_DOWN = {
    "INSERT INTO log VALUES (1, now()); UPDATE job SET seen = now() WHERE id = 1;": True,
    "NEW.seen := now(); RETURN NEW;": True,
    "NEW.seen = now(); RETURN NEW;": True,
    "t := now(); UPDATE hold SET until = t WHERE until < t;": False,
    "INSERT INTO log (made) VALUES (1); t = now();  IF last < t THEN RETURN; END IF;": False,
    "UPDATE hold SET seat = 2 WHERE until < now();": False,
    "t := now(); t := t + interval '1 s'; INSERT INTO log VALUES (1, t);": False,
    "t := now(); INSERT INTO log (id, t) VALUES (1, t); NEW.seen := t; RETURN NEW;": True,
    "t := now(); RETURN t;": False,
    "PERFORM acquire(at := now());": False,
    "INSERT INTO log VALUES (1, jsonb_build_object('(', lower('A)'), 'at', now()));": False,
    "INSERT INTO log VALUES (1, coalesce(lower('json'), NULL), now());": True,
}


@pytest.mark.parametrize("body", WRITTEN_DOWN)
def test_a_variable_of_a_function_may_be_compared_later(body: str) -> None:
    for declared in ("DECLARE t timestamptz; BEGIN", "DECLARE t timestamp with time zone := now(); BEGIN"):
        assert postgres.decides_inside(f"{declared} {body} END") is not WRITTEN_DOWN[body]


@pytest.mark.parametrize(
    "body", ["SET t = NOW(); INSERT INTO log VALUES (1)", "INSERT INTO log VALUES (1); SET t = NOW();"]
)
def test_on_mariadb_a_variable_always_counts(body: str) -> None:
    """The clock is virtual there by one more command in each session."""
    assert mariadb.decides(f"BEGIN {body} END")
