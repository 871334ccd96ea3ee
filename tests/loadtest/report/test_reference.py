"""docs/reference.md is what the registries say."""

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from loadtest.report.pages import reference
from locks import LOCKS
from locks.hazards import Hazard


def test_reference_is_fresh() -> None:
    assert reference.PATH.read_text(encoding="utf-8") == reference.page(), (
        "docs/reference.md is stale: run `python manage.py reference`"
    )


def test_a_changed_lock_makes_it_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LOCKS["token"], "breaks_when", "the moon is full")
    with pytest.raises(CommandError, match="stale"):
        call_command("reference", check=True)


def test_command_writes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "PATH", tmp_path / "reference.md")
    with pytest.raises(CommandError, match="stale"):
        call_command("reference", check=True)
    call_command("reference")
    call_command("reference", check=True)
    assert all(f"[{slug}]" in reference.PATH.read_text() for slug in LOCKS)


def test_hazards_are_written_the_shorter_way() -> None:
    assert reference.hazards([]) == "nothing"
    assert reference.hazards(Hazard) == "all"
    assert reference.hazards(set(Hazard) - {Hazard.PAUSE}) == "all but pause"
    assert reference.hazards([Hazard.PAUSE, Hazard.CRASH]) == "crash-holding, pause"
