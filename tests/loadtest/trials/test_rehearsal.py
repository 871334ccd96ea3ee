"""A third-party lock that fails for every caller is reported in its own words, before a run is spent on it."""

import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from ledger.addresses import BASE_DIR
from ledger.resources import redis_client
from loadtest.swarm.compare import Comparison
from loadtest.trials import rehearsal
from loadtest.trials.rehearsal import rehearse
from tests.loadtest.third_party import ASKED

HERE = "tests.loadtest.third_party"
#: lock → the message: before any server is asked (loadtest/commandline/called_once.py), or by the rehearsal
BROKEN = {
    f"{HERE}:raising": r"raises at once: RuntimeError: boom in acquire",
    f"{HERE}:other_arguments": r"asks for `key`, which the lab does not offer",
    f"{HERE}:a_coroutine": r"is not a lock: calling it gives a coroutine",
    f"{HERE}:leaving": r"raises at once: SystemExit: 0",
    f"{HERE}:WithoutExit": r"is not a lock: it returned",
    f"{HERE}:raising_later": r"cannot be taken(?=(?s:.*)returns a context manager).*RuntimeError: boom in acquire",
}


@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize("spec", BROKEN)
def test_a_lock_that_nobody_can_take_is_bad_usage(spec: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=f"{spec} {BROKEN[spec]}") as raised:
        call_command("compare", output=tmp_path, lock=[spec], users=2, seconds=0.2)
    assert raised.value.returncode == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("committed_db")
def test_one_that_waits_is_left_to_the_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal, "PATIENCE", 0.2)
    for spec in ("never", "right", "needs_zookeeper"):
        rehearse(Comparison(strategies=("no-lock",)).case(f"{HERE}:{spec}"))


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
def test_a_release_that_fails_is_reported_before_the_run(
    ledger: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It spoils no posting, so no trial reports it; in most locks it is why no other caller gets in."""
    spec = f"{HERE}:failing_release"
    with suppress(SystemExit):  # whether two callers lose something within 0.2 s is chance
        call_command("compare", output=tmp_path, host=ledger, lock=[spec], users=2, seconds=0.2)
    told = f"{spec}: its release fails, even for one caller alone: RuntimeError: boom in release\n"
    assert capfd.readouterr().err.startswith(told)


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
def test_one_that_fails_later_is_inconclusive_in_its_own_words(ledger: str, tmp_path: Path) -> None:
    redis_client().delete(ASKED)
    spec = f"{HERE}:only_once"
    with pytest.raises(SystemExit):
        call_command("compare", output=tmp_path, host=ledger, lock=[spec], users=4, seconds=0.5)
    found = json.loads((tmp_path / "compare.json").read_text())["results"][-1]
    assert found["verdict"] == "inconclusive"
    assert found["cause"].startswith(f"no operation was acknowledged ({found['operations']['info']} × Run")
    assert " × RuntimeError: boom in acquire)" in found["cause"]


@pytest.mark.deep
def test_on_servers_of_its_own(tmp_path: Path) -> None:
    words = "--hazard", "crash-holding", "--lock", f"{HERE}:raising", "--output", str(tmp_path)
    done = subprocess.run(
        [sys.executable, "manage.py", "faults", *words],
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "RuntimeError: boom in acquire" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
