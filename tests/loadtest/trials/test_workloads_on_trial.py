"""Each workload with a real swarm: the control breaks its law, a right strategy keeps it, a known mistake is named."""

from pathlib import Path
from typing import Any

import pytest

from tests.loadtest.swarm.test_compare import run_compare

pytestmark = pytest.mark.usefixtures("committed_db")

RIGHT = "select-for-update"
#: (users leave one barrier together and think for 20 ms: they meet)
MEETING = {"users": 6, "seconds": 3.0, "think": (0.02, 0.02)}


def verdicts(ledger: str, tmp_path: Path, workload: str, *strategies: str, **options: Any) -> dict[str, Any]:
    _, report = run_compare(
        tmp_path, host=ledger, workload=workload, strategy=[*strategies], **{**MEETING, **options}
    )
    return {each["strategy"]: each for each in report["results"]}


@pytest.mark.deep
def test_stock(ledger: str, tmp_path: Path) -> None:
    """The article's 14 of 10 prizes: the same swarm, and the check outside of the decrement."""
    results = verdicts(ledger, tmp_path, "stock", "check-then-decrement", "atomic-update", option=["stock=3"])
    assert {slug: each["verdict"] for slug, each in results.items()} == {
        "no-lock": "lost",  # graver than oversold, which it may be too: test_verdict.py has both at once
        "check-then-decrement": "oversold",
        "atomic-update": "kept",
    }
    oversold = results["check-then-decrement"]
    assert (oversold["lost_amount"], oversold["claimed"]) == (0, False)
    assert results["atomic-update"]["operations"]["fail"] > 0  # "out of stock" is no fault


@pytest.mark.deep
def test_transfers(ledger: str, tmp_path: Path) -> None:
    results = verdicts(ledger, tmp_path, "transfers", RIGHT, option=["looks=0.5"])
    assert {slug: each["verdict"] for slug, each in results.items()} == {"no-lock": "lost", RIGHT: "kept"}
    assert any("looks saw another total" in each["sentence"] for each in results["no-lock"]["breaches"])
    assert results[RIGHT]["operations"]["looks"] > 0
    assert results[RIGHT]["deadlocks"] == 0  # one order for everyone


@pytest.mark.deep
def test_read_mostly(ledger: str, tmp_path: Path) -> None:
    results = verdicts(ledger, tmp_path, "read-mostly", "optimistic-version", option=["reads=0.5"])
    assert {slug: each["verdict"] for slug, each in results.items()} == {
        "no-lock": "lost",
        "optimistic-version": "kept",
    }
    assert results["optimistic-version"]["operations"]["looks"] > 0


@pytest.mark.deep
def test_run_once(ledger: str, tmp_path: Path) -> None:
    """Four processes with clocks of their own want each day's job."""
    results = verdicts(ledger, tmp_path, "run-once", RIGHT, option=["days=8"])
    assert {slug: each["verdict"] for slug, each in results.items()} == {"no-lock": "created", RIGHT: "kept"}
    assert results[RIGHT]["acknowledged_operations"] >= 2  # days


@pytest.mark.deep
def test_imports(ledger: str, tmp_path: Path) -> None:
    """Files, the API's callers and the scan on one account, from three kinds of processes."""
    results = verdicts(ledger, tmp_path, "imports", RIGHT, option=["lines=10"])
    assert {slug: each["verdict"] for slug, each in results.items()} == {"no-lock": "lost", RIGHT: "kept"}
    kept = results[RIGHT]
    assert kept["imported"]["ok"] >= 40  # 4 files of 10 lines, and what the scan charged
    assert kept["operations"]["ok"] > kept["imported"]["ok"]  # and the API's
    assert kept["drift"] == 0
