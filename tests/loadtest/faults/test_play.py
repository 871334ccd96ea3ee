"""Which cells run again, and which processes are reused: the matrix without its servers."""

import os
from collections.abc import Iterator
from queue import Queue
from threading import Event, Thread
from typing import Any

import pytest

from loadtest.faults.cell import Cell, weighed
from loadtest.faults.hazards import ADVERSARIES
from loadtest.faults.matrix import Matrix, MatrixPlan, parties
from loadtest.faults.play import again
from loadtest.faults.scene.scene import FEW, POSTINGS, STUCK
from loadtest.faults.workers.crew import Pool
from loadtest.history.calls import CallHistory
from loadtest.trials.case import JudgedCase, Witness
from loadtest.verdict.evidence import Doubt, Stall
from loadtest.verdict.judge import Verdict, judge
from loadtest.verdict.words import Word
from tests.loadtest.trials.examples import kept


def stalled(strategy: str, sentence: str) -> JudgedCase:
    """Before its hazard fired."""
    return JudgedCase(
        case=Cell(strategy, ADVERSARIES["pause"]).case(),
        verdict=Verdict(word=Word.STALLED),
        witness=Witness(history=CallHistory(), stall=Stall(sentence, 11.0)),
    )


def test_a_strategy_that_stalls_under_contention_as_documented_is_not_repeated() -> None:
    assert not again([stalled("token-leaky", STUCK)])


def test_against_its_claim_or_later_it_is() -> None:
    assert again([stalled("token", STUCK)])
    assert again([stalled("token-leaky", "2 live workers got no answer")])


@pytest.mark.parametrize(
    ("changes", "tried_again"),
    [
        ({"control": Word.KEPT}, False),
        ({"control": None}, False),
        ({"control": Word.KEPT, "is_control": True}, True),
        ({"control": Word.KEPT, "planned": frozenset({"pause"})}, True),
        ({"control": Word.KEPT, "doubts": (Doubt("cut short", "let it end"),)}, True),
    ],
)
def test_what_its_control_alone_leaves_in_doubt_is_not_run_again(
    changes: dict[str, Any], tried_again: bool
) -> None:
    """The control was tried again itself: to run another cell three times as often shows no more."""
    verdict = judge(kept(**changes))
    assert verdict.word == Word.INCONCLUSIVE
    assert (
        again([JudgedCase(case=Cell("token", ADVERSARIES["pause"]).case(), verdict=verdict)]) == tried_again
    )


def test_a_stall_on_a_busy_machine_is_doubted_unless_the_page_tells_of_it(monkeypatch) -> None:
    told = {slug: stalled(slug, STUCK) for slug in ("token", "token-leaky")}

    def words() -> dict[str, list[str]]:
        weighings = {slug: weighed(each.witness.stall, each.case) for slug, each in told.items()}
        return {slug: [each.cause for each in doubts] for slug, (_, doubts) in weighings.items()}

    monkeypatch.setattr("os.getloadavg", lambda: (1000.0 * (os.cpu_count() or 1), 1.0, 1.0))
    seen = words()
    assert "the load is" in seen["token"][0]
    assert seen["token-leaky"] == []
    monkeypatch.setattr("os.getloadavg", lambda: (0.5, 0.5, 0.5))
    assert words() == {"token": [], "token-leaky": []}


@pytest.mark.parametrize("dear", ["redlock", "insert-lock"])
def test_two_hundred_whose_looks_are_dear_look_less_often(dear: str) -> None:
    """At the pace of the others they keep the servers busy for half a minute and more, mostly in vain."""
    polls = {slug: Cell(slug, ADVERSARIES["stampede"]).case().settings["poll"] for slug in ("token", dear)}
    assert polls[dear] > 3 * polls["token"]


def test_strategies_that_claim_contention_post_less_often_in_each_crowd() -> None:
    """The others, and third-party locks, must have the chance to lose in the one cell that they have."""
    slugs = "select-for-update", "no-lock", "tests.loadtest.third_party:right"
    cells = [Cell(slug, ADVERSARIES["overrun"]) for slug in slugs]
    calm = Cell("select-for-update", ADVERSARIES["overrun"], strikes=False)
    assert [each.crowds(each.case()) for each in (*cells, calm)] == [FEW, POSTINGS, POSTINGS, POSTINGS]


def matrix_of(pool: Pool) -> tuple[Matrix, list[Cell], list[Cell]]:
    plan = MatrixPlan(strategies=("no-lock", "setnx"), hazards=tuple(ADVERSARIES))
    cells = plan.cells()
    controls = [each for each in cells if each.strategy == "no-lock"]
    site: Any = None
    return Matrix(plan, site, pool=pool), controls, [each for each in cells if each not in controls]


def test_controls_begin_first_then_what_lasts_longest_and_shared_servers_are_struck_one_hazard_at_a_time(
    pool: Pool,
):
    matrix, controls, others = matrix_of(pool)
    singles, together, *alone = [some for some, _ in matrix._lots(parties(controls) + parties(others))]
    for lot in (singles, together, *alone):
        begin = [(each[0].strategy != "no-lock", -each[0].hazard.lasts) for each in lot]
        assert begin == sorted(begin)
    assert [{cell.hazard for group in lot for cell in group} for lot in alone] == [
        {ADVERSARIES[slug]} for slug in ADVERSARIES if ADVERSARIES[slug].alone
    ]


class Awaited(Event):
    """Says when a caller begins to wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = Event()

    def wait(self, timeout: float | None = None) -> bool:
        self.begun.set()
        return super().wait(timeout)


@pytest.mark.deep
def test_a_cell_that_needs_a_control_waits_for_its_verdict(pool: Pool):
    matrix, (control, *_), others = matrix_of(pool)
    cell = next(each for each in others if each.hazard is control.hazard)
    due = matrix._due[control.hazard.slug, control.store] = Awaited()
    told: Queue[Word | None] = Queue()
    asking = Thread(target=lambda: told.put(matrix._control(cell)), daemon=True)
    asking.start()
    assert due.begun.wait(10)
    assert told.empty()
    matrix.controls[control.hazard.slug, control.store] = Word.LOST
    due.set()
    assert told.get(timeout=10) == Word.LOST


@pytest.fixture
def pool() -> Iterator[Pool]:
    pool = Pool()
    yield pool
    pool.close()


@pytest.mark.deep
def test_a_process_started_for_one_kind_of_work_keeps_it_until_it_is_ended(pool: Pool) -> None:
    ordinary, special = pool.hire(), pool.hire("herd")
    for worker in (ordinary, special):
        pool.give_back(worker, clean=True)
    assert pool.hire("herd") is special
    assert pool.hire() is ordinary
    pool.give_back(special, clean=True)
    pool.dismiss()
    assert not special.lives
    assert ordinary.lives
