"""Every option and every field of JSON that was promised is still there.

The JSON of the commands is compared where it comes into being: in the tests that run them (`lost`, tests/contracts.py).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import get_commands, load_command_class

from loadtest.verdict.claims import Exit
from tests import contracts
from tests.contracts import CONTRACTS, lost, options

OURS = sorted(name for name, app in get_commands().items() if app in ("ledger", "loadtest"))
TESTS = Path(__file__).parent


@pytest.mark.parametrize("name", CONTRACTS["options"])
def test_a_command_has_every_option_that_was_promised(name: str) -> None:
    parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
    assert set(CONTRACTS["options"][name]) <= set(options(parser))
    assert parser.format_help()


def test_every_command_is_in_the_list() -> None:
    assert set(CONTRACTS["options"]) <= set(OURS), "a command is gone"
    assert set(OURS) <= set(CONTRACTS["options"]), "add it to tests/contracts.json"


def test_an_option_that_is_gone_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONTRACTS["options"], "explore", [*CONTRACTS["options"]["explore"], "--magic"])
    with pytest.raises(AssertionError):
        test_a_command_has_every_option_that_was_promised("explore")


def test_exit_codes_are_those_that_were_promised() -> None:
    """That each command ends with the right one of them is tested where it runs, and in test_claims.py."""
    assert {each.name: each.value for each in Exit} == CONTRACTS["exit_codes"]


@pytest.mark.parametrize("name", CONTRACTS["fields"])
def test_the_json_of_each_command_is_compared_by_some_test(name: str) -> None:
    others = (path for path in TESTS.rglob("test_*.py") if path != Path(__file__))
    assert any(re.search(rf'lost\("{re.escape(name)}"', path.read_text()) for path in others)


def report() -> dict[str, Any]:
    """The smallest that has a field at each turn of a path."""
    loss = {"at": "2026-01-01", "lost": {"id": "e1"}}
    measured = {"verdict": "lost", "opening": 1, "first_loss": loss, "breaches": [{"word": "lost"}]}
    return {"results": [measured, {"verdict": "not-run", "reason": "no server"}, {"verdict": "inconclusive"}]}


PATHS = ["results.measured.first_loss.lost.id", "results.measured.breaches.*.word", "results.not-run.reason"]


def test_a_field_that_is_gone_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(contracts.CONTRACTS["fields"], "it.json", PATHS)
    assert lost("it.json", report()) == []
    gone: list[tuple[Any, str]] = []
    for number in range(3):
        told = report()
        measured, not_run, _ = told["results"]
        where, name = [
            (measured["first_loss"]["lost"], "id"),
            (measured["breaches"][0], "word"),
            (not_run, "reason"),
        ][number]
        del where[name]
        gone.append((lost("it.json", told), PATHS[number]))
    assert [found for found, _ in gone] == [[path] for _, path in gone]


def test_what_is_null_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(contracts.CONTRACTS["fields"], "it.json", PATHS[:1])
    told = report()
    told["results"][0]["first_loss"] = None
    assert lost("it.json", told) == []
    del told["results"][0]["first_loss"]
    assert lost("it.json", told) == PATHS[:1]
