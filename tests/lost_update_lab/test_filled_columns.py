"""In which commands a time that a DEFAULT fills may decide: those that return it, and those that compare it."""

from __future__ import annotations

import pytest

from lost_update_lab.servers.filled_columns import FilledColumns

FILLED = FilledColumns({"made"}, {"hold", "last_hold"}, {"last_hold", "age_of"})
TOLD = {
    "SELECT made FROM hold": "made",
    "SELECT 1 FROM hold WHERE made < %s ← '2026-01-01'": "made",
    'SELECT "hold"."made" FROM "hold"': "made",
    "SELECT * FROM hold": "hold",
    "SELECT h.* FROM hold h": "hold",
    "SELECT row_to_json(h) FROM hold h": "hold",
    "TABLE hold": "hold",
    "SELECT since FROM last_hold": "last_hold",
    "SELECT age_of(7)": "age_of",
    "INSERT INTO hold (seat) VALUES (7) RETURNING *": "hold",
    "INSERT INTO hold (seat) VALUES (7) RETURNING id, made": "made",
    "INSERT INTO other SELECT made FROM hold": "made",
    "DELETE FROM hold WHERE made < %s": "made",
    "UPDATE hold SET seat = 7 WHERE made < %s": "made",
    "SELECT count(*) FROM hold": "",
    "SELECT seat FROM hold": "",
    "SELECT * FROM other": "",
    "SELECT 1 ← 'made'": "",
    "INSERT INTO hold (seat) VALUES (7)": "",
    "INSERT INTO hold (seat, made) VALUES (7, %s)": "",
    "INSERT INTO hold (seat) VALUES (7) RETURNING id": "",
    "UPDATE hold SET seat = 7 WHERE id = 1": "",
}


@pytest.mark.parametrize("text", TOLD)
def test_which_commands_tell_it(text: str) -> None:
    assert FILLED.told_in(text) == TOLD[text]
    assert not FilledColumns((), (), ()).told_in(text)


def test_which_may_fill_it() -> None:
    assert FILLED.written_by("INSERT INTO hold (seat) VALUES (7)")
    assert not FILLED.written_by("INSERT INTO other (seat) VALUES (7) ← 'hold'")
