"""Claims beside evidence, and the exit codes."""

from __future__ import annotations

import pytest

from loadtest.claims import agrees, claims, exit_code
from loadtest.words import Word
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
    assert exit_code(results) == code
