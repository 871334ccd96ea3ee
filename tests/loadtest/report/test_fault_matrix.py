"""The table in docs/faults.md has every strategy and every hazard, and the claims are what it shows."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from ledger.strategies import STRATEGIES, find
from loadtest.faults.hazards import ADVERSARIES
from loadtest.report.pages import fault_matrix
from loadtest.verdict.claims import claims


def report() -> dict[str, Any]:
    """What `manage.py faults` writes when every claim is true."""
    results = []
    for strategy in STRATEGIES:
        for hazard, adversary in ADVERSARIES.items():
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
    monkeypatch.setattr(fault_matrix, "DATA", tmp_path / "data" / "faults.json")
    write(tmp_path, report())
    return path


def write(folder: Path, found: dict[str, Any]) -> None:
    (folder / "run.json").write_text(json.dumps(found))
    call_command("fault_matrix", folder / "run.json")


def row(page: Path, strategy: str) -> list[str]:
    [line] = [line for line in page.read_text().splitlines() if line.startswith(f"| `{strategy}` |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_the_committed_table_fits() -> None:
    call_command("fault_matrix", check=True)


def test_what_is_written_fits(page: Path) -> None:
    call_command("fault_matrix", check=True)
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("after\n")


def test_a_page_that_was_edited_is_seen(page: Path) -> None:
    page.write_text(page.read_text().replace("| L |", "| ? |", 1))
    with pytest.raises(CommandError, match="it is stale"):
        call_command("fault_matrix", check=True)


def test_a_run_of_a_few_cells_is_merged(page: Path, tmp_path: Path) -> None:
    """The rest stays as it was measured, and the page says where each was."""
    column = list(ADVERSARIES).index("pause")
    cell = {"strategy": "token", "hazard": "pause", "verdict": "stalled"}
    assert row(page, "token")[column] == "L"
    write(tmp_path, {"results": [cell], "environment": {"cores": 4, "commit": "def"}})
    assert row(page, "token")[column] == "S"
    whole = len(STRATEGIES) * len(ADVERSARIES)
    told = f"(cells: {whole - 1} on 2 cores ({whole - 1} at commit abc); 1 on 4 cores (1 at commit def))"
    assert told in " ".join(page.read_text().split())


def test_what_nobody_measured_is_shown_so(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new strategy and a new hazard cost no run: a command that takes seconds gives them their row and column."""
    monkeypatch.setitem(STRATEGIES, "brand-new", STRATEGIES["token"])
    monkeypatch.setitem(ADVERSARIES, "meteor", ADVERSARIES["pause"])
    with pytest.raises(CommandError, match="stale"):
        call_command("fault_matrix", check=True)
    call_command("fault_matrix")
    call_command("fault_matrix", check=True)
    assert row(page, "brand-new") == [fault_matrix.MISSING] * len(ADVERSARIES)
    assert row(page, "token")[-1] == fault_matrix.MISSING
    counts = [line for line in page.read_text().splitlines() if line.startswith(("| pause |", "| meteor |"))]
    assert re.search(r"\d+ of \d+, 1 not measured", counts[0])
    assert "not measured" in counts[1]


def test_what_lacked_a_server_was_not_measured(page: Path, tmp_path: Path) -> None:
    before = row(page, "zookeeper")
    cell = {
        "strategy": "zookeeper",
        "hazard": "pause",
        "verdict": "not-run",
        "reason": "no ZooKeeper",
        "remedy": "install it",
    }
    write(tmp_path, {"results": [cell], "environment": {"cores": 2, "commit": "def"}})
    assert row(page, "zookeeper") == before


def test_what_is_no_more_is_left_out(page: Path, tmp_path: Path) -> None:
    cell = {"strategy": "my.module:lock", "hazard": "pause", "verdict": "lost"}
    write(tmp_path, {"results": [cell], "environment": {"cores": 2, "commit": "def"}})
    assert "my.module" not in page.read_text() + fault_matrix.DATA.read_text()
    fault_matrix.DATA.write_text(fault_matrix.DATA.read_text().replace('"token pause"', '"tokken pause"'))
    with pytest.raises(CommandError, match="tokken pause: no such strategy or hazard"):
        call_command("fault_matrix", check=True)
    call_command("fault_matrix")
    assert row(page, "token").count(fault_matrix.MISSING) == 1


def test_a_claim_against_the_evidence_is_seen(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = find("token")
    monkeypatch.setattr(token, "withstands", token.withstands | {ADVERSARIES["pause"].word})
    with pytest.raises(CommandError, match="token × pause: claims to withstand it, and came to lost"):
        call_command("fault_matrix", check=True)


def test_nothing_is_written_from_nothing(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"no file .*none.json: `python manage.py faults` writes one"):
        call_command("fault_matrix", tmp_path / "none.json")
