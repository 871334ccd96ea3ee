"""explore, faults and trust, asked for in the admin: each strategy is one run of the command, in a process of its own.

    a step of runner.py → manage.py explore --strategy setnx --json … → its file → a `Result` for each of its results

Only what the forms offer reaches a command line: slugs of strategies and hazards, and numbers.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ledger.addresses import BASE_DIR
from ledger.strategies import CONTROL, known
from loadtest import models
from loadtest.background.runner import Runner, steps
from loadtest.faults.hazards import ADVERSARIES
from loadtest.servers.children import child_environment
from loadtest.trials import records
from loadtest.verdict.words import Word, gravest
from lost_update_lab.embedded.reaper import REAPER

EXPLORE, FAULTS, TRUST = "explore", "faults", "trust"
BACKGROUND_COMMANDS = (EXPLORE, FAULTS, TRUST)
#: seconds: how often a run is looked at; how long a strategy may take beyond its budget; how long until it has ended
LOOK_EVERY, MARGIN, END_WITHIN = 0.5, 900.0, 60.0
#: of the load test that `trust` runs
TRUST_SECONDS = 2.0
#: lines of what a command says that the page shows
SAID = 40


@dataclass(frozen=True, kw_only=True)
class CommandRequest:
    """What somebody wants run. `budget`: seconds of search for each strategy; `hazards`: none for all of them."""

    command: str
    strategies: tuple[str, ...]
    hazards: tuple[str, ...] = ()
    budget: int = 60
    workers: int = 2
    faults: int = 1
    workload: str = "deposits"

    def words(self, strategy: str) -> list[str]:
        """Return the command's words for one strategy. Raises ValueError for what no form offers."""
        if (
            self.command not in BACKGROUND_COMMANDS
            or strategy not in known()
            or not set(self.hazards) <= ADVERSARIES.keys()
        ):
            raise ValueError(f"not offered: {self.command} {strategy} {', '.join(self.hazards)}")
        hazards = [word for name in self.hazards for word in ("--hazard", name)]
        own = {
            EXPLORE: [
                *("--budget", str(self.budget), "--workers", str(self.workers)),
                *("--faults", str(self.faults), "--workload", self.workload, "--lanes", "1"),
            ],
            FAULTS: hazards,
            TRUST: ["--budget", str(self.budget), "--seconds", f"{TRUST_SECONDS:g}", *hazards],
        }
        return [self.command, "--strategy", strategy, *own[self.command]]


class CommandRunner(Runner):
    """A step is one run of the command, for one strategy."""

    commands = BACKGROUND_COMMANDS

    def begin(self, asked: CommandRequest, user: Any = None) -> models.Trial:
        """Store the request. Raises ValueError for what is not offered, and when the user has too many under way."""
        for strategy in asked.strategies:
            asked.words(strategy)
        return records.begin(
            asked.command,
            workload=asked.workload,
            store="postgres",
            adversary={EXPLORE: "every order", FAULTS: "faults", TRUST: "all three"}[asked.command],
            asked=asdict(asked),
            said=[],
            **steps(asked.strategies, user),
        )

    def step(self, row: models.Trial, at: int) -> list[models.Result]:
        asked, strategy = _asked(row), row.options["strategies"][at]
        row.options["said"] = []
        return _results(row, asked, strategy, _run(row, asked, strategy))

    def failed(self, row: models.Trial, at: int, error: Exception) -> models.Result:
        return _not_run(row, row.options["strategies"][at], f"it failed: {error}")


def _asked(row: models.Trial) -> CommandRequest:
    asked = row.options["asked"]
    return CommandRequest(
        **{**asked, "strategies": tuple(asked["strategies"]), "hazards": tuple(asked["hazards"])}
    )


def _run(row: models.Trial, asked: CommandRequest, strategy: str) -> dict[str, Any]:
    """Run the command to its end, or until somebody stops it. Returns what its file holds; {"reason"} without one."""
    with tempfile.TemporaryDirectory(prefix="lab-command-") as folder:
        said = Path(folder, "said.txt")
        with said.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, str(BASE_DIR / "manage.py"), *asked.words(strategy), "--output", folder],
                env=child_environment() | {"COLUMNS": "160"},
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        REAPER.watch(process.pid, signal.SIGTERM)
        try:
            _watch(row, process, said, time.monotonic() + asked.budget + MARGIN)
        finally:
            _end(process)
            REAPER.forget(process.pid)
        file = Path(folder, f"{asked.command}.json")
        if file.exists():
            found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            return found
        return {"reason": f"it ended with {process.returncode}: {' '.join(_lines(said)[-3:])[-500:]}"}


def _watch(row: models.Trial, process: subprocess.Popen[bytes], said: Path, until: float) -> None:
    """Show what the command says as it comes. Ends when it does, when somebody asks for it, or when it is late."""
    while True:
        try:
            process.wait(LOOK_EVERY)
            return
        except subprocess.TimeoutExpired:
            lines = _lines(said)
            if lines != row.options["said"]:
                row.options["said"] = lines
                row.save(update_fields=["options"])
            row.refresh_from_db(fields=["stopped"])
            if row.stopped or time.monotonic() > until:
                return


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()  # as Ctrl-C: what it has found is kept
    try:
        process.wait(END_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _lines(said: Path) -> list[str]:
    text = said.read_text(encoding="utf-8", errors="replace")
    return [line.strip()[:300] for line in text.splitlines() if line.strip()][-SAID:]


def _results(
    row: models.Trial, asked: CommandRequest, strategy: str, found: Mapping[str, Any]
) -> list[models.Result]:
    """Return the results to store; the control's, which comes with every strategy, once."""
    if "reason" in found:
        return [_not_run(row, strategy, found["reason"])]
    row.environment = found.get("environment") or row.environment
    known_control = strategy != CONTROL and row.results.filter(strategy=CONTROL).exists()
    return [
        models.Result(trial=row, strategy=data["strategy"], verdict=data["verdict"], data=data)
        for data in _judged(asked.command, found)
        if not (known_control and data["strategy"] == CONTROL)
    ]


def _not_run(row: models.Trial, strategy: str, reason: str) -> models.Result:
    data = {"strategy": strategy, "verdict": str(Word.NOT_RUN), "reason": reason}
    return models.Result(trial=row, strategy=strategy, verdict=data["verdict"], data=data)


def _judged(command: str, found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the results with a verdict each. The answer of `trust` has none of its own: the gravest of its rows."""
    for data in found["results"]:
        if command != TRUST:
            yield data
            continue
        words = [Word(each["word"]) for each in data["rows"] if each["word"]]
        yield {**data, "verdict": str(gravest(words) or Word.INCONCLUSIVE), "cause": data["answer"][0]}


COMMAND_LINES = CommandRunner()
