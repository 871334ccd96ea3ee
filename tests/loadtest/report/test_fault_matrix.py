"""The table in docs/faults.md has every strategy and every hazard, and the claims are what it shows."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from ledger.strategies import STRATEGIES, find
from loadtest.faults.hazards import HAZARDS
from loadtest.report.pages import fault_matrix
from loadtest.verdict.claims import claims


def report() -> dict[str, Any]:
    """What `manage.py faults` writes when every claim is true."""
    results = []
    for strategy in STRATEGIES:
        for hazard, adversary in HAZARDS.items():
            claimed = claims(find(strategy).withstands, [adversary.word])
            results.append(
                {
                    "strategy": strategy,
                    "hazard": hazard,
                    "verdict": "kept" if claimed else "lost",
                    "claimed": claimed,
                    "agrees": True,
                }
            )
    where = {"cores": 2, "commit": "abc"}
    return {"results": results, "options": {"plan": {"seed": 7}}, "environment": where}


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "faults.md"
    path.write_text(f"before\n{fault_matrix.BEGIN}\n{fault_matrix.END}\nafter\n")
    monkeypatch.setattr(fault_matrix, "PATH", path)
    file = tmp_path / "faults.json"
    file.write_text(json.dumps(report()))
    call_command("fault_matrix", file)
    return path


def test_the_committed_table_fits() -> None:
    assert fault_matrix.complaints(fault_matrix.PATH.read_text()) == []


def test_what_is_written_fits(page: Path) -> None:
    call_command("fault_matrix", check=True)
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("after\n")


def test_a_strategy_without_a_row_is_seen(page: Path) -> None:
    lines = [line for line in page.read_text().splitlines() if not line.startswith("| `token` ")]
    page.write_text("\n".join(lines))
    with pytest.raises(CommandError, match="token × pause: no cell"):
        call_command("fault_matrix", check=True)


def test_a_new_hazard_is_seen(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HAZARDS, "meteor", HAZARDS["pause"])
    with pytest.raises(CommandError, match="token × meteor: no cell"):
        call_command("fault_matrix", check=True)


def test_a_claim_against_the_evidence_is_seen(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = find("token")
    monkeypatch.setattr(token, "withstands", token.withstands | {HAZARDS["pause"].word})
    with pytest.raises(CommandError, match="token × pause: claims to withstand it, the table says L"):
        call_command("fault_matrix", check=True)


def test_a_table_that_contradicts_itself_is_seen(page: Path) -> None:
    page.write_text(page.read_text().replace("| L |", "| ? |", 1))
    assert fault_matrix.complaints(page.read_text()) == []  # it decides nothing: the legend says so
    page.write_text(page.read_text().replace("| L |", "| L! |", 1))
    assert len(fault_matrix.complaints(page.read_text())) == 1


def test_nothing_is_written_from_nothing(tmp_path: Path) -> None:
    with pytest.raises(
        CommandError, match=r"there is no file .*none.json: `python manage.py faults` writes one"
    ):
        call_command("fault_matrix", tmp_path / "none.json")
