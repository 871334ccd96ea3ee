"""Ctrl-C: nothing is begun again, what was under way is kept; and what a worker leaves behind between two cells."""

import os
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from ledger.books import open_book
from loadtest.faults import matrix, play
from loadtest.faults.cell import Cell
from loadtest.faults.hazards import ADVERSARIES
from loadtest.faults.workers.desk import Desk
from loadtest.trials.case import JudgedCase
from loadtest.verdict.evidence import Doubt
from loadtest.verdict.judge import in_doubt


@pytest.mark.parametrize(("stopped", "tries"), [(False, play.ATTEMPTS), (True, 1)])
def test_after_ctrl_c_nothing_is_tried_again(
    stopped: bool, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cell, ended = Cell("token", ADVERSARIES["pause"]), Event()
    if stopped:
        ended.set()
    undecided = JudgedCase(case=cell.case(), verdict=in_doubt(Doubt("", "")))
    monkeypatch.setattr(play, "_together", lambda *_: {cell: undecided})
    none: Any = None
    assert len(play.play([cell], none, none, none, ended)[cell]) == tries


def test_what_was_under_way_at_ctrl_c_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = Event()
    slow = (Cell("token", ADVERSARIES["pause"]),)
    never = (Cell("setnx", ADVERSARIES["pause"]),)
    begun = Event()

    def work(cells: Any) -> Any:
        if cells is never:
            raise KeyboardInterrupt
        begun.set()
        assert ended.wait(10)
        return [{"strategy": cells[0].strategy}]

    def interrupted(*_: Any, **__: Any) -> Any:
        assert begun.wait(10)
        raise KeyboardInterrupt

    monkeypatch.setattr(matrix, "wait", interrupted)
    told = matrix._several(work, [slow, never], 2, ended)
    assert next(told) == [{"strategy": "token"}]
    with pytest.raises(KeyboardInterrupt):
        next(told)


def test_a_worker_closes_the_journal_of_the_cell_before(
    committed_db: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGAPPNAME", "")
    book, pipe = str(open_book("token", [("A0001", 0, None)]).pk), None
    desk = Desk(pipe)  # type: ignore[arg-type]
    monkeypatch.setattr(desk.way, "take", lambda *_: None)
    desk.open(book, str(tmp_path), {}, [], 0, 1, False)
    first = desk.journal._file
    seen = os.fstat(first).st_ino
    desk.open(book, str(tmp_path), {}, [], 0, 1, False)
    with suppress(OSError):  # closed; or the number now belongs to another file
        assert os.fstat(first).st_ino != seen
