"""manage.py lease: the two prices of a lease, from section times."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from loadtest.lease.weigh import at_most, read, weigh
from tests.contracts import lost


def test_a_longer_lease_overruns_less_and_stands_still_longer() -> None:
    sections = [0.01] * 98 + [0.5, 2.0]
    rows = list(weigh(sections, [0.1, 1.0, 5.0], a_day=1000, crashes=2))
    assert [row.overruns for row in rows] == [20.0, 10.0, 0.0]
    assert [row.standstill for row in rows] == [0.2, 2.0, 10.0]
    assert rows[-1].overruns_at_most == 30.0, "a hundred sections without one say no more than this"


@pytest.mark.parametrize("share", [0.002, 0.1, 0.6])
def test_the_bound_holds(share: float) -> None:
    """Of 400 samples of 500 sections, about 97.5 % have the true share below their bound; seven of ten would not do."""
    dice = random.Random(f"{share}")
    below = sum(share <= at_most(sum(dice.random() < share for _ in range(500)), 500) for _ in range(400))
    assert below / 400 > 0.93
    assert at_most(500, 500) == pytest.approx(1.0)


def test_own_section_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sections"
    file.write_text("12\n\n7.5\n4100\n")
    assert read(file.read_text()) == [0.012, 0.0075, 4.1]
    call_command("lease", sections=file, lease=[5.0], per_day=10, json=True)
    told = json.loads(capsys.readouterr().out)
    assert lost("lease.json", told) == []
    assert told["sections"] == 3
    assert told["section_ms"]["max"] == 4100
    assert told["results"][0] == {
        "lease": 5.0, "share": 0.0, "overruns": 0.0, "overruns_at_most": 10.0, "standstill": 5.0
    }  # fmt: skip


@pytest.mark.parametrize("text", ["", "fast\n", "-1\n", "inf\n"])
def test_a_file_without_times_is_bad_usage(text: str, tmp_path: Path) -> None:
    (tmp_path / "sections").write_text(text)
    with pytest.raises(CommandError, match="give milliseconds, one section on each line"):
        call_command("lease", sections=tmp_path / "sections")


@pytest.mark.usefixtures("committed_db", "redis_client")
def test_the_labs_own_sections(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("lease", seconds=0.2, callers=2)
    out = capsys.readouterr().out
    assert "standstill" in out
    assert "sections, ms: p50" in out


@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize(("slug", "told"), [("select-for-update", "has no lease"), ("nobody", "no strategy")])
def test_without_a_lock_around_the_section_there_is_nothing_to_weigh(slug: str, told: str) -> None:
    with pytest.raises(CommandError, match=told):
        call_command("lease", strategy=slug, seconds=0.1)
