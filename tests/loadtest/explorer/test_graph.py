"""The positions of /play are those of the explorer: a level explored again is the one that is committed."""

from __future__ import annotations

import json
from collections import deque
from typing import Any

import pytest

from loadtest.explorer.lanes import Lanes
from loadtest.findings.job import Job
from loadtest.front import evidence
from loadtest.report import playable
from loadtest.verdict.words import Word, gravest

#: the walk says `unbroken` of what the court calls kept only with its control
GOOD = "unbroken"


def graph(level: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(playable.text(level))
    return found


def ends(found: dict[str, Any]) -> set[str]:
    return {node["end"]["word"] for node in found["nodes"] if "end" in node}


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
def test_a_level_explored_again_is_the_committed_one() -> None:
    with Lanes(1) as lanes:
        ((_, answer),) = lanes.explore([Job(strategy="no-lock", positions=True)])
    anew = json.loads(json.dumps(answer["result"]))
    kept = graph("no-lock")
    del kept["schedules"]  # of the ordinary search
    assert shape(anew) == shape(kept)


def shape(found: dict[str, Any]) -> Any:
    """Without the names of entries and of lines of code."""
    nodes = [
        (node["at"], [(m[0], m[1], m[4]) for m in node["moves"]], node.get("end", {}).get("word"))
        for node in found["nodes"]
    ]
    return nodes, [(each["balances"], each["workers"]) for each in found["states"]]


@pytest.mark.parametrize("level", playable.LEVELS)
def test_every_position_can_be_reached_and_goes_on_or_ends(level: str) -> None:
    nodes = graph(level)["nodes"]
    seen, queue = {0}, deque([0])
    while queue:
        for move in nodes[queue.popleft()]["moves"]:
            if move[4] not in seen:
                seen.add(move[4])
                queue.append(move[4])
    assert seen == set(range(len(nodes)))
    assert all(bool(node["moves"]) != ("end" in node) for node in nodes)


@pytest.mark.parametrize("slug", [name for name, level in playable.LEVELS.items() if level.workers == 2])
def test_the_ends_are_those_of_the_committed_search(slug: str) -> None:
    fields = evidence.rows()[slug].fields.values()
    searched = {str(f.schedule["verdict"]) for f in fields if f.schedule}
    found = graph(slug)
    assert searched <= ends(found)
    assert gravest(map(Word, ends(found) - {GOOD})) == gravest(map(Word, searched))
    assert found["schedules"] == evidence.rows()[slug].schedules


def test_the_last_level_cannot_be_broken_and_the_first_can() -> None:
    assert ends(graph("fenced")) == {GOOD}
    assert "lost" in ends(graph("no-lock"))


def test_in_three_lanes_two_of_three_can_be_lost_and_a_row_lock_keeps_them_all() -> None:
    """From an end one sees that all three have worked, and what is left."""
    losing, queueing = graph("no-lock-3"), graph("select-for-update-3")
    level = playable.LEVELS["no-lock-3"]
    assert (level.total, level.workers) == (160, 3)
    assert {lane for node in losing["nodes"] for move in node["moves"] for lane in move[1]} >= set("ABC")
    assert balances(losing) == {110, 120, 130, 140, 150, 160}
    assert (ends(queueing), balances(queueing)) == ({GOOD}, {160})


def balances(found: dict[str, Any]) -> set[int]:
    """What the account holds at the ends."""
    held = [found["states"][node["held"]] for node in found["nodes"] if "end" in node]
    return {balance for each in held for balance in each["balances"].values()}


def test_what_is_lost_is_missing_in_the_balance_and_off_the_chain() -> None:
    found = graph("no-lock")
    for node in found["nodes"]:
        if node.get("end", {}).get("word") == "lost":
            held = found["states"][node["held"]]
            (balance,) = held["balances"].values()
            heads = [each for each in held["entries"] if each["head"] == "true"]
            assert [each["after"] for each in heads] == [balance]
            assert balance < 130
            assert len(held["entries"]) == 2


def test_a_command_names_the_line_that_sends_it() -> None:
    found = graph("select-for-update")
    lines = {found["texts"][move[3]] for node in found["nodes"] for move in node["moves"]}
    assert any("select_for_update" in line for line in lines)
    assert all(not line or line.startswith(("ledger/", "locks/")) for line in lines)
