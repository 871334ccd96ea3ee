"""What runs share of their beginning is what each of them comes to by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from lost_update_lab.harness import Harness
from lost_update_lab.harness.play import NotSmaller
from lost_update_lab.memo.recording import Recording
from lost_update_lab.model.errors import Unknown
from lost_update_lab.model.transitions import Transition
from lost_update_lab.replay.prefix_tree import PrefixTree
from lost_update_lab.replay.shrink import _candidates
from lost_update_lab.runs.found import Found, Size
from lost_update_lab.runs.in_memory_run import InMemoryRun
from lost_update_lab.schedule.schedule_id import roughly
from lost_update_lab.search.search import Search
from tests.lost_update_lab import bank


def searched(harness: Callable[..., Harness]) -> tuple[Harness, dict[bytes, int], list[Sequence[Transition]]]:
    """The harness after a search, what it knows of its waiters, and what a shrinking would try."""
    played = harness(bank.no_lock, faults=1)
    search = Search(played)
    found = list(search.explore().found.values())
    candidates = [each for one in found for each in _candidates(one)]
    assert len(candidates) > 10
    return played, search.calibrated, candidates


def outcome(tree: PrefixTree, candidate: Sequence[Transition], below: Size | None = None) -> object:
    try:
        found: Found = tree.play(roughly(candidate), below)
    except NotSmaller:
        return "not smaller"
    except Unknown:
        return "unknown"
    return found.judgement, found.faults, found.choices, found.transitions, found.steps


def test_a_run_comes_to_the_same_as_from_its_beginning(
    harness: Callable[..., Harness], monkeypatch: pytest.MonkeyPatch
) -> None:
    played, watched, candidates = searched(harness)
    turns = 0
    advance = InMemoryRun._advance

    def counted(run: InMemoryRun, *args: object) -> None:
        nonlocal turns
        turns += 1
        advance(run, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(InMemoryRun, "_advance", counted)
    alone = [outcome(PrefixTree(played, watched), each) for each in candidates]
    by_themselves, turns = turns, 0
    tree = PrefixTree(played, watched)
    # bounded first: a run that was given up is gone on with where it was
    bounded = [outcome(tree, each, (0, 1, 5)) for each in candidates]
    assert "not smaller" in bounded
    assert [outcome(tree, each) for each in candidates] == alone
    assert turns < by_themselves / 2


def test_what_was_computed_is_forgotten_with_what_the_harness_knew(harness: Callable[..., Harness]) -> None:
    played, watched, candidates = searched(harness)
    tree = PrefixTree(played, watched)
    before = outcome(tree, candidates[0])
    assert tree._first
    kept = played.recording
    played.recording = Recording()
    assert not tree._begun()
    played.recording = kept
    assert outcome(tree, candidates[0]) == before
