"""Claims beside evidence, and the exit codes."""

from __future__ import annotations

import pytest

from loadtest.verdict.claims import agreement, agrees, claims, exit_code, unanswered, undecided
from loadtest.verdict.words import Word
from locks.hazards import Hazard

BAD = [Word.CREATED, Word.LOST, Word.OVERSOLD, Word.STALLED, Word.REFUSED]


@pytest.mark.parametrize("word", BAD)
def test_a_claim_is_contradicted_by_anything_but_kept(word: Word):
    assert agrees(True, word) is False
    assert agrees(False, word) is True


@pytest.mark.parametrize("claimed", [True, False])
def test_kept_contradicts_nobody_and_no_result_decides_nothing(claimed: bool):
    assert agrees(claimed, Word.KEPT) is True
    assert agrees(claimed, Word.INCONCLUSIVE) is None
    assert agrees(claimed, Word.NOT_RUN) is None


def test_a_claim_needs_contention_and_every_hazard():
    withstands = {Hazard.CONTENTION, Hazard.CRASH}
    assert claims(withstands)
    assert claims(withstands, [Hazard.CRASH])
    assert claims(withstands, ["crash-holding"])
    assert not claims(withstands, [Hazard.CRASH, Hazard.PAUSE])
    assert not claims({Hazard.CRASH}, [Hazard.CRASH]), (
        "who loses under mere contention loses under a crash too"
    )


@pytest.mark.parametrize(
    ("results", "code"),
    [
        ([(False, Word.LOST), (True, Word.KEPT)], 0),
        ([(False, Word.LOST), (True, Word.LOST)], 1),
        ([(True, Word.LOST), (True, Word.INCONCLUSIVE)], 1),
        ([(True, Word.KEPT), (True, Word.INCONCLUSIVE)], 3),
        ([(False, Word.INCONCLUSIVE)], 3),
        ([(True, Word.KEPT), (True, Word.NOT_RUN)], 0),
        ([(True, Word.NOT_RUN)], 3),
        ([], 3),
    ],
)
def test_exit_codes(results: list[tuple[bool, Word]], code: int):
    told = [{"strategy": "token", "verdict": str(w), "agrees": agrees(c, w)} for c, w in results]
    assert exit_code(told) == code


def test_the_control_alone_answers_no_other_question():
    """It is what `faults --strategy zookeeper` leaves where no ZooKeeper is installed."""
    control = {"strategy": "no-lock", "verdict": "lost", "agrees": True}
    assert exit_code([control]) == 0
    assert exit_code([control, {"strategy": "zookeeper", "verdict": "not-run", "agrees": None}]) == 3


def test_one_disagreement_decides_and_an_open_question_leaves_it_open():
    kept, lost, open_ = (True, Word.KEPT), (True, Word.LOST), (True, Word.INCONCLUSIVE)
    assert agreement([kept, (False, Word.LOST)]) is True
    assert agreement([kept, open_]) is None
    assert agreement([kept], complete=False) is None
    assert agreement([kept, open_, lost], complete=False) is False


def test_what_a_search_left_open_and_nobody_claimed_is_not_undecided():
    under = {"contention": "kept", "pause": "inconclusive", "failover": "inconclusive"}
    assert undecided({"under": under, "claims": ["contention", "pause"]}) == ["pause"]
    assert undecided({"verdict": "kept"}) == [], "a swarm has one answer"


@pytest.mark.parametrize(
    ("words", "nothing"),
    [
        ({"no-lock": "lost", "zookeeper": "not-run"}, True),
        ({"no-lock": "lost", "zookeeper": "not-run", "token": "kept"}, False),
        ({"no-lock": "lost"}, False),
        ({"no-lock": "not-run"}, True),
    ],
)
def test_the_verdict_of_the_control_answers_no_claim(words: dict[str, str], nothing: bool):
    assert unanswered([{"strategy": slug, "verdict": word} for slug, word in words.items()]) is nothing
