"""One court: each run of many is judged by the same laws in the same order as a trial; nothing else gives a verdict."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import loadtest
from ledger.reconcile import ClientOutcome, reconcile_book
from loadtest.verdict import judge as court
from loadtest.verdict.evidence import Doubt, Evidence, Stall
from loadtest.verdict.judge import judge, judge_run
from loadtest.verdict.laws import Breach
from loadtest.verdict.words import LETTERS, SAYS, Word, breaks, explained, gravest
from tests.loadtest.trials.examples import correct, evidence_of, kept, lossy

ROOT = Path(loadtest.__file__).parent


def created() -> Evidence:
    history = lossy()
    history.write("refused", 500, outcome=ClientOutcome.FAIL)
    return evidence_of(history)


def unasked() -> Evidence:
    history = correct()
    history.write("z", 5)
    return kept(books=reconcile_book([(history.account, history.entries)], {"A1": history.operations}))


CASES: dict[str, Evidence] = {
    "created": created(),
    "lost": evidence_of(lossy()),
    "oversold": kept(breaches=(Breach(Word.OVERSOLD, "14 of 10"),)),
    "stalled": kept(stall=Stall("nobody got on", 3.0)),
    "refused": kept(unavailable="B was refused"),
    "lost and refused": replace(evidence_of(lossy()), unavailable="B was refused"),
    "a doubt": kept(doubts=(Doubt("A raised KeyError", "look"),)),
    "refused, and a doubt": kept(unavailable="B was refused", doubts=(Doubt("A raised KeyError", "look"),)),
    "money that nobody asked for": unasked(),
    "refused, and money that nobody asked for": replace(unasked(), unavailable="B was refused"),
}


@pytest.mark.parametrize("evidence", CASES.values(), ids=CASES)
def test_a_run_is_judged_as_a_trial_is(evidence: Evidence) -> None:
    verdict = judge_run(evidence)
    assert verdict is not None
    assert verdict.word == judge(evidence).word
    assert verdict.cause in judge(evidence).cause


@pytest.mark.parametrize("evidence", CASES.values(), ids=CASES)
def test_a_court_that_overlooks_what_was_broken_or_doubted_is_seen(
    evidence: Evidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test above: blind to laws and doubts, it says nothing, or another word."""
    word = judge(evidence).word
    monkeypatch.setattr(court, "_breaches", lambda evidence: [])
    monkeypatch.setattr(court, "doubts_within", lambda evidence: [])
    assert judge_run(evidence) is None
    assert word != Word.KEPT


@pytest.mark.parametrize(
    "evidence",
    [
        kept(control=None),
        kept(control=Word.KEPT),
        kept(planned=frozenset({"pause"})),
        replace(kept(), observed=replace(kept().observed, overlaps=0)),
    ],
)
def test_what_only_all_runs_together_can_show_is_not_asked_of_one(evidence: Evidence) -> None:
    assert judge_run(evidence) is None
    assert judge(evidence).word == "inconclusive"


def test_refused_means_right_so_not_where_money_was_created() -> None:
    assert judge(CASES["refused, and money that nobody asked for"]).word == "inconclusive"


def other_courts(source: str) -> Iterator[str]:
    """Yield what only the court may do: make a verdict, or choose among words by their gravity."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Verdict":
            yield f"line {node.lineno}: makes a Verdict"
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("min", "sorted")
        ):
            yield from (
                f"line {node.lineno}: weighs laws"
                for each in ast.walk(node)
                if isinstance(each, ast.Name) and each.id == "breaches"
            )
        if isinstance(node, ast.ImportFrom) and {"books_law", "_breaches"} & {
            each.name for each in node.names
        }:
            yield f"line {node.lineno}: asks the law of the books itself"


def test_there_is_no_other_court() -> None:
    found = {
        str(path.relative_to(ROOT)): told
        for path in ROOT.rglob("*.py")
        if path.parent != ROOT / "verdict" and (told := list(other_courts(path.read_text())))
    }
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        "Verdict(word=Word.LOST)",
        "from loadtest.verdict.laws import books_law",
        "worst = min(breaches, key=gravity)",
        "breaches = sorted([*breaches, more])",
    ],
)
def test_another_court_is_seen(source: str) -> None:
    assert list(other_courts(source))


def test_each_word_has_one_letter_and_one_sentence() -> None:
    assert list(SAYS) == [str(word) for word in Word]
    assert len(set(LETTERS.values())) == len(Word)
    assert [word.letter for word in Word if word.is_breach] == list("CLOSR")
    assert list(explained(["kept", "lost"])) == ["lost", "kept"]


def test_which_words_break_a_law() -> None:
    assert [str(word) for word in Word if breaks(word)] == [
        "created",
        "lost",
        "oversold",
        "stalled",
        "refused",
    ]
    assert not breaks("unbroken"), "what a schedule came to is not always a verdict"


def test_the_gravest() -> None:
    assert gravest([Word.KEPT, Word.STALLED, Word.LOST]) is Word.LOST
    assert gravest([]) is None
