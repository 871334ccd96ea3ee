"""`lost-update-lab suggest`: records one run of the user's test suite, and says which operations to put on trial."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import Any

from lost_update_lab.command.explore import STDERR
from lost_update_lab.scenarios.notes import NOTHING_AT_STAKE
from lost_update_lab.scenarios.result import INCONCLUSIVE, KEPT, NOT_EXPLORED, WIDTH
from lost_update_lab.suggest.pairs import Pair, operations, pairs
from lost_update_lab.suggest.recording import read
from lost_update_lab.suggest.strays import strays
from lost_update_lab.suggest.writing import name_of, source, why_not
from lost_update_lab.under_test.scenario import Mistake

APART = (
    "{} more touch the same table, and your tests called them for other rows: they race only where their arguments "
    "meet. Write these by hand, or write them all by --all and change their arguments: {}"
)
NOTHING_WRITTEN = (
    "neither of the two changed a row or a key, not even one after the other, so there was nothing to lose. Are the "
    "rows that they are about missing from the setup? Or does neither of them commit, because its caller does?"
)
UNDECIDED_PAIRS = (
    "{} of {} could not be decided, which proves nothing. Correct what is said of them above; or write them without "
    "--confirm, and change their setup"
)
#: pytest's exit codes of a run that has a result
RAN = (0, 1)


def suggest(given: argparse.Namespace) -> int:
    """Returns 0; with --confirm, 1 if a pair breaks, and 3 if none does and some could not be decided."""
    target = Path(given.output)
    if target.exists():
        raise Mistake(f"{target} exists already, and is not overwritten: name another file by --output")
    with tempfile.TemporaryDirectory() as folder:
        recorded = Path(folder) / "commands"
        code = _pytest([*given.pytest, f"--race-record={recorded}"])
        if not recorded.exists() or code not in RAN:
            raise Mistake(
                f"pytest ended with code {code}, and nothing was recorded. `pytest {' '.join(given.pytest)}` has to "
                "run here by itself first"
            )
        commands = read(recorded)
    if {"postgres", "mariadb"} <= {each.server for each in commands}:
        raise Mistake(
            "the tests talk to PostgreSQL and to MariaDB, and a race has one of them: name the tests of one "
            "(lost-update-lab suggest tests/orders)"
        )
    found = pairs(operations(commands))
    if not found:
        raise Mistake(
            f"{len(commands)} commands were recorded, and no two operations touch the same rows or keys, one writing"
            if commands
            else "the tests sent no command to PostgreSQL, MariaDB or Redis (those with the fixture `race` do not "
            "count). Run it where some test calls your operations, on a server and not on SQLite"
        )
    able = [pair for pair in found if (pair.meet or given.all) and not why_not(pair)]
    django = any(each.django for each in commands)
    results = _confirmed(able, django, target) if given.confirm else {}
    kept = [pair for pair in able if not given.confirm or _broken(results.get(name_of(pair), {}))]
    if kept:
        target.write_text(source(kept, django), encoding="utf-8")
    undecided = sum(given.confirm and _is_open(results.get(name_of(pair), {})) for pair in able)
    left = UNDECIDED_PAIRS.format(undecided, len(able)) if undecided else ""
    _tell(given, found, kept, results, target, left)
    return 1 if given.confirm and kept else 3 if undecided else 0


def _pytest(arguments: Sequence[str]) -> int:
    alone = ["-n0"] if find_spec("xdist") else []
    command = [sys.executable, "-m", "pytest", "-q", *alone, *arguments]
    return subprocess.run(command, check=False, stdout=STDERR).returncode


def _confirmed(able: Sequence[Pair], django: bool, target: Path) -> dict[str, dict[str, Any]]:
    """Explore each pair. Returns, by the test's name, its result or the mistake that kept it from being explored."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "results.json"
        trial = target.with_name(f"test_suggested_{target.stem}.py")
        trial.write_text(source(able, django), encoding="utf-8")
        try:
            _pytest([str(trial), f"--race-json={told}", "--no-header", "--tb=no"])
        finally:
            trial.unlink()
        results = json.loads(told.read_text(encoding="utf-8"))["results"] if told.exists() else []
    found = {each["name"].rpartition("::")[2]: each for each in results}
    return {name_of(pair): _as_recorded(pair, found.get(name_of(pair), {})) for pair in able}


def _as_recorded(pair: Pair, result: dict[str, Any]) -> dict[str, Any]:
    """A pair that did something else here than in the tests is not kept, and neither is one that did nothing."""
    if result.get("verdict") != KEPT:
        return result
    sent = zip((pair.first, pair.second), result["alone"].values(), strict=True)
    told = next((told for operation, alone in sent if (told := strays(operation, alone))), "")
    if not told and NOTHING_AT_STAKE in result["notes"]:
        told = NOTHING_WRITTEN
    return {**result, "verdict": INCONCLUSIVE, "sentence": told} if told else result


def _broken(result: dict[str, Any]) -> bool:
    return not _is_open(result) and result["verdict"] != KEPT


def _is_open(result: dict[str, Any]) -> bool:
    """Was it not explored, or not to its end? {}: its test gave no result."""
    return result.get("verdict", INCONCLUSIVE) in (INCONCLUSIVE, NOT_EXPLORED)


def _tell(
    given: argparse.Namespace,
    found: Sequence[Pair],
    kept: Sequence[Pair],
    results: dict[str, dict[str, Any]],
    target: Path,
    left: str,
) -> None:
    """`left`: what was not decided, in a sentence."""
    rows = [_row(pair, results.get(name_of(pair), {})) for pair in found]
    apart = [] if given.all else [pair for pair in found if not pair.meet]
    if given.json:
        print(json.dumps({"pairs": rows, "written": str(target) if kept else ""}, indent=2))
        return
    met = rows[: len(rows) - len(apart)]  # those come first
    print(f"{len(met)} pairs of operations touch the same rows or keys, one of them writing:\n")
    for number, row in enumerate(met, 1):
        print(f"{number:3}. {row['pair']}{'  ' + row['verdict'] if row['verdict'] else ''}")
        print(f"     {row['why']}")
        if row["sentence"]:
            print(f"     {row['sentence']}")
    if apart:
        names = ", ".join(f"{pair.title} ({pair.things[0]})" for pair in apart)
        print("\n" + fill(APART.format(len(apart), names), WIDTH, subsequent_indent="     "))
    print(
        f"\n{len(kept)} scenarios are in {target}: pytest {target}" if kept else "\nNo scenario was written"
    )
    if left:
        print(fill(left, WIDTH))


def _row(pair: Pair, result: dict[str, Any]) -> dict[str, Any]:
    faults = (result.get("schedule") or {}).get("faults") or ()
    found = result.get("sentence", "") + f" (in an order with a fault: {', '.join(faults)})" * bool(faults)
    cannot = f"write this scenario by hand: {reason}" if (reason := why_not(pair)) else ""
    return {
        "pair": pair.title,
        "danger": pair.danger,
        "meet": pair.meet,
        "why": pair.why,
        "verdict": result.get("verdict", ""),
        "sentence": cannot or found,
        "id": result.get("id", ""),
    }
