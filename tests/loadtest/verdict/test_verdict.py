"""Every word of the verdict, each with the evidence that earns it, and that `kept` needs every condition."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import loadtest
from ledger.reconcile import AccountBooks, Books, ClientOutcome, reconcile_book
from loadtest.history.observed import ClientAnswers, Observed
from loadtest.verdict.evidence import Doubt, Evidence, Stall
from loadtest.verdict.judge import judge, not_run
from loadtest.verdict.laws import Breach, count_law, floor_law
from loadtest.verdict.words import Word
from tests.ledger.history import History
from tests.loadtest.trials.examples import correct, evidence_of, kept, lossy


def test_kept():
    verdict = judge(kept())
    assert verdict.word == "kept"
    assert verdict.remedy == ""
    assert verdict.cause == (
        "4 operations acknowledged and each of them kept; 4 operations overlapped another; "
        "the control came out as lost"
    )


def test_kept_with_hazards_lists_what_fired_and_what_did_not_apply():
    verdict = judge(
        kept(
            planned=frozenset({"pause", "failover"}),
            fired={"pause": "SIGSTOP of 4711 while it held, 600 ms"},
            not_applicable={"failover": "no-lock talks to no Redis"},
        )
    )
    told = json.loads(json.dumps(verdict.as_json()))
    assert told["verdict"] == "kept"
    assert told["fired"] == {"pause": "SIGSTOP of 4711 while it held, 600 ms"}
    assert told["not_applicable"] == {"failover": "no-lock talks to no Redis"}
    assert told["cause"].endswith("fired: pause")


def unbalanced() -> Books:
    history = correct()
    rows = [(history.account._replace(balance=1), history.entries)]
    return reconcile_book(rows, {"A1": history.operations})


def drifting() -> Books:
    """Reconcile cannot produce this; if it ever did, it must not be called kept."""
    return Books(
        opening=0, final=5, acknowledged_operations=4, accounts=(AccountBooks(number="A1", final=5),)
    )


def unasked() -> Books:
    history = correct()
    history.write("z", 5)
    return reconcile_book([(history.account, history.entries)], {"A1": history.operations})


MISSING: dict[str, tuple[dict[str, Any], str]] = {
    "nothing acknowledged": (
        {"observed": Observed(overlaps=4), "books": Books()},
        "no operation was acknowledged",
    ),
    "nothing but errors": (
        {"observed": Observed(overlaps=4), "books": Books(), "errors": {"RuntimeError: boom": 9, "rare": 1}},
        "no operation was acknowledged (9 × RuntimeError: boom)",
    ),
    "no overlap": ({"observed": Observed(acknowledged=4)}, "no two operations overlapped"),
    "a hazard slept": ({"planned": frozenset({"pause"})}, "did not fire: pause"),
    "a hazard without proof": (
        {"planned": frozenset({"pause"}), "fired": {"pause": ""}},
        "did not fire: pause",
    ),
    "not applicable without a reason": (
        {"planned": frozenset({"pause"}), "not_applicable": {"pause": ""}},
        "did not fire: pause",
    ),
    "another hazard fired": (
        {"planned": frozenset({"pause"}), "fired": {"overrun": "6 s"}},
        "did not fire: pause",
    ),
    "no control": ({"control": None}, "no control was run"),
    "the control kept": ({"control": Word.KEPT}, "the control came out as kept"),
    "the control was inconclusive": ({"control": Word.INCONCLUSIVE}, "the control came out as inconclusive"),
    "the control stalled": ({"control": Word.STALLED}, "the control came out as stalled"),
    "the control was refused": ({"control": Word.REFUSED}, "the control came out as refused"),
    "the control was not run": ({"control": Word.NOT_RUN}, "the control came out as not-run"),
    "it is the control": ({"is_control": True}, "broke no law"),
    "the books do not balance": (
        {"books": unbalanced()},
        "the books do not balance (2 problems): account A1 has 1",
    ),
    "a drift": ({"books": drifting()}, "an unexplained drift of +5"),
    "clients know more than the books": (
        {"observed": Observed(acknowledged=5, overlaps=4)},
        "the clients know 5 acknowledged operations, the books 4",
    ),
    "the books know more than the clients": (
        {"books": unasked()},
        "1 entry is in the books that no client asked for",
    ),
    "unfinished workers": ({"unfinished": 3}, "3 workers had not finished"),
    "cut short": ({"doubts": (Doubt("the budget ended", "--budget 600"),)}, "the budget ended"),
}


@pytest.mark.parametrize("missing", MISSING)
def test_each_condition_that_is_missing_makes_it_inconclusive(missing: str):
    change, cause = MISSING[missing]
    verdict = judge(kept(**change))
    assert verdict.word == "inconclusive"
    assert cause in verdict.cause
    assert verdict.remedy, "a doubt without a remedy helps nobody"


@given(st.sets(st.sampled_from(sorted(MISSING)), min_size=1))
def test_no_combination_of_missing_conditions_is_kept(names: set[str]):
    change: dict[str, Any] = {}
    for name in sorted(names):
        change |= MISSING[name][0]
    assert judge(kept(**change)).word == "inconclusive"


def test_only_one_code_path_says_kept():
    """`Word.KEPT` becomes a verdict on one line of the package; elsewhere it is only compared."""
    found = []
    for path in Path(loadtest.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text())
        compared = {
            id(part) for node in ast.walk(tree) if isinstance(node, ast.Compare) for part in ast.walk(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == "KEPT" and id(node) not in compared:
                found.append(path.name)
    assert found == ["judge.py"]


def test_lost_tells_the_worst_loss():
    verdict = judge(evidence_of(lossy()))
    assert verdict.word == "lost"
    assert verdict.cause.startswith(
        "30 lost with 3 operations of 5 that were acknowledged; the worst: web-2 and web-5 both read 110"
    )


def test_the_control_is_judged_without_a_control():
    assert judge(evidence_of(lossy(), control=None, is_control=True)).word == "lost"


def test_an_aba_loss_is_lost_although_nothing_drifted():
    history = History()
    history.write("a", 10, None, outcome=ClientOutcome.OK)
    history.write("b", -10, "a", outcome=ClientOutcome.OK)
    history.write("c", 5, None, outcome=ClientOutcome.OK)
    evidence = evidence_of(history)
    assert evidence.books is not None
    assert evidence.books.drift == 0
    assert judge(evidence).word == "lost"


def test_a_lost_update_of_no_money_is_lost():
    history = correct()
    history.write("rename", 0, outcome=ClientOutcome.OK)
    history.write("x", 1, "d", outcome=ClientOutcome.OK)
    assert judge(evidence_of(history)).word == "lost"


def test_created_is_graver_than_lost():
    history = lossy()
    history.write("refused", 500, outcome=ClientOutcome.FAIL)
    verdict = judge(evidence_of(history))
    assert verdict.word == "created"
    assert [each.word for each in verdict.breaches] == ["created", "lost"]
    assert "500 created by 1 operation, first: web-6 wrote entry " in verdict.cause


def test_a_torn_transfer_is_lost_although_no_account_lost_anything():
    a, b = correct("A"), correct("B")
    b.write("t", 10, outcome=ClientOutcome.INFO)
    a.told("t", -10, ClientOutcome.INFO)
    evidence = evidence_of(a, b)
    assert evidence.books is not None
    assert evidence.books.lost_updates == 0
    verdict = judge(evidence)
    assert verdict.word == "lost"
    assert (
        "1 torn postings, 10 out of balance; the worst: posting t is on the chain of B (+10)" in verdict.cause
    )


def stock(opening: int, *sold: int) -> Evidence:
    history = History(number="prizes", opening=opening)
    for number, amount in enumerate(sold):
        history.write(f"s{number}", -amount, outcome=ClientOutcome.OK)
    evidence = evidence_of(history)
    assert evidence.books is not None
    return replace(evidence, breaches=tuple(floor_law(evidence.books, {"prizes": 0})))


def test_oversold():
    verdict = judge(stock(10, 4, 4, 4, 2))
    assert verdict.word == "oversold"
    assert verdict.cause == "1 account oversold; the worst, prizes, down to -4, its floor being 0"
    assert judge(stock(10, 4, 4, 2)).word == "kept", "sold out is not oversold"


def test_oversold_in_between_is_oversold_although_it_was_filled_up_again():
    assert judge(stock(10, 11, -5, 1)).word == "oversold"


def test_more_promised_than_there_was_is_oversold_beside_lost():
    history = History(number="prizes", opening=1)
    history.write("a", -1, None, outcome=ClientOutcome.OK)
    history.write("b", -1, None, outcome=ClientOutcome.OK)
    evidence = evidence_of(history)
    assert evidence.books is not None
    verdict = judge(replace(evidence, breaches=tuple(floor_law(evidence.books, {"prizes": 0}))))
    assert [each.word for each in verdict.breaches] == ["lost", "oversold"]


def test_of_several_oversold_accounts_the_worst_is_named():
    deep, shallow = History(number="deep", opening=10), History(number="shallow", opening=1)
    deep.write("d", -15, outcome=ClientOutcome.OK)
    shallow.write("s", -3, outcome=ClientOutcome.OK)
    evidence = evidence_of(deep, shallow)
    assert evidence.books is not None
    (breach,) = floor_law(evidence.books, {"deep": 0, "shallow": 0})
    assert breach.sentence == "2 accounts oversold; the worst, deep, down to -5, its floor being 0"
    (breach,) = floor_law(evidence.books, {"deep": -4, "shallow": 0})
    assert "the worst, shallow, down to -2" in breach.sentence, "by how far below its own floor"


def test_an_account_in_several_rows_is_oversold_as_a_whole():
    rows = [History(number=f"prizes/{n}", opening=5) for n in range(2)]
    rows[0].write("a", -5, outcome=ClientOutcome.OK)
    evidence = evidence_of(*rows)
    assert evidence.books is not None
    assert floor_law(evidence.books, {"prizes": 0}) == []
    rows[1].write("b", -8, outcome=ClientOutcome.OK)
    evidence = evidence_of(*rows)
    assert evidence.books is not None
    (breach,) = floor_law(evidence.books, {"prizes": 0})
    assert breach.sentence == "1 account oversold; the worst, prizes, down to -3, its floor being 0"


def test_accounts_without_a_floor_may_be_overdrawn():
    history = History(opening=0)
    history.write("a", -5, outcome=ClientOutcome.OK)
    evidence = evidence_of(history)
    assert evidence.books is not None
    assert floor_law(evidence.books, {"another": 0}) == []


def test_run_once_by_its_count():
    once = kept(books=None, breaches=tuple(count_law({"monday": 1})))
    assert judge(once).word == "kept"
    twice = kept(books=None, breaches=tuple(count_law({"monday": 1, "tuesday": 2})))
    assert (judge(twice).word, judge(twice).cause) == ("created", "tuesday ran 2 times, not 1")
    never = kept(books=None, breaches=tuple(count_law({"monday": 0})))
    assert judge(never).word == "lost"


@pytest.mark.parametrize(
    ("recovered", "ending"),
    [(True, "30.0 s, recovered by itself"), (False, "had not recovered after 30.0 s")],
)
def test_stalled(recovered: bool, ending: str):
    verdict = judge(kept(stall=Stall("the dead worker's key lock:A1 never expires", 30.0, recovered)))
    assert verdict.word == "stalled"
    assert verdict.cause == f"the dead worker's key lock:A1 never expires ({ending})"


def test_refused():
    assert judge(kept(unavailable="no quorum: 2 of 5 nodes answered")).word == "refused"
    assert judge(kept(answers=ClientAnswers(refused=5, acknowledged=4))).word == "refused"
    even = kept(answers=ClientAnswers(refused=4, acknowledged=4))
    assert judge(even).word == "kept", "as many were served: contention, not unavailability"
    nobody = kept(answers=ClientAnswers(refused=9), observed=Observed(failed=9), books=Books())
    assert judge(nobody).word == "refused"


@pytest.mark.parametrize(
    ("answers", "word"),
    [
        (ClientAnswers(refused=1), "refused"),
        (ClientAnswers(unknown=3), "refused"),
        (ClientAnswers(refused=4, acknowledged=1), "refused"),
        (ClientAnswers(refused=1, unknown=3, acknowledged=1), "kept"),
        (ClientAnswers(unknown=3, declined=1), "kept"),
        (ClientAnswers(), "kept"),
    ],
)
def test_what_was_acknowledged_before_the_hazard_does_not_show_that_anybody_is_served_after_it(
    answers: ClientAnswers, word: str
):
    """The trial knows four acknowledged operations: all of them the crowd's, before the strike."""
    fired = kept(planned=frozenset({"pause"}), fired={"pause": "stopped"}, answers=answers)
    assert judge(fired).word == word


def broken_inside() -> Books:
    """The balance is right, but one entry does not add up."""
    history = correct()
    history.entries[1] = history.entries[1]._replace(balance_before=111, balance_after=121)
    return reconcile_book([(history.account, history.entries)], {"A1": history.operations})


@pytest.mark.parametrize("books", [unbalanced, drifting, broken_inside])
def test_refused_means_right_so_not_for_books_that_do_not_add_up(books: Callable[[], Books]):
    assert judge(kept(answers=ClientAnswers(refused=5), books=books())).word == "inconclusive"
    assert judge(kept(unavailable="no quorum", books=books())).word == "inconclusive"


def test_the_gravest_word_wins():
    stall, floor = Stall("nobody got on", 3.0), (Breach(Word.OVERSOLD, "14 of 10 sold"),)
    assert judge(kept(stall=stall, answers=ClientAnswers(refused=9))).word == "stalled"
    assert judge(kept(stall=stall, breaches=floor)).word == "oversold"
    assert judge(replace(evidence_of(lossy()), stall=stall, breaches=floor)).word == "lost"
    assert judge(kept(answers=ClientAnswers(refused=9), control=None)).word == "refused"


def test_not_run_when_no_hazard_can_touch_the_subject():
    untouchable = kept(planned=frozenset({"failover"}), not_applicable={"failover": "it talks to no Redis"})
    verdict = judge(untouchable)
    assert (verdict.word, verdict.cause) == ("not-run", "failover: it talks to no Redis")
    assert verdict.as_json()["reason"] == "failover: it talks to no Redis"
    lost = replace(untouchable, books=evidence_of(lossy()).books)
    assert judge(lost).word == "lost", "what was lost all the same is not hidden"


def test_not_run_needs_a_reason():
    told = not_run("MariaDB is not installed", "apt-get install mariadb-server").as_json()
    assert (told["verdict"], told["reason"]) == ("not-run", "MariaDB is not installed")
    with pytest.raises(ValueError, match="needs a reason"):
        not_run("")


@pytest.mark.parametrize("word", [Word.KEPT, Word.INCONCLUSIVE, Word.NOT_RUN])
def test_a_workload_cannot_say_that_it_was_kept(word: Word):
    with pytest.raises(ValueError, match="a breach cannot be called"):
        Breach(word, "we are fine")


def test_words_are_ordered_by_gravity():
    assert sorted(Word, key=lambda word: word.gravity)[:7] == [
        "created", "lost", "oversold", "stalled", "refused", "inconclusive", "kept",
    ]  # fmt: skip


def test_evidence_is_frozen():
    with pytest.raises(AttributeError):
        kept().control = Word.LOST  # type: ignore[misc]
    assert isinstance(kept(), Evidence)
