"""`lost-update-lab explore module:scenario`."""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from operator import attrgetter
from types import ModuleType
from typing import Any

from lost_update_lab.scenarios.mistakes import told_at
from lost_update_lab.scenarios.race import NotKept, Race
from lost_update_lab.scenarios.result import BY_A_TEST, NOT_MADE, SURVIVES, UNDECIDED, Result, Tried
from lost_update_lab.telling.lines import line_of
from lost_update_lab.under_test.of_django import project_of
from lost_update_lab.under_test.scenario import FAULT_WORDS, Mistake, limits_of

#: the standard error of this process: pytest's output is not the command's
STDERR = 2
NOT_FOUND = "cannot import {} ({}). Check the spelling and the current folder"


def explore(given: argparse.Namespace) -> list[Result]:
    results = explored(given.scenario, bounds_of(given))
    return [missed_by_tests(each, given.tests) for each in results] if given.tests else results


def missed_by_tests(result: Result, tests: str) -> Result:
    """Which mutations that break no schedule break one of these tests? `tests`: as pytest takes it."""
    alone = ["-n0"] if find_spec("xdist") else []
    command = [sys.executable, "-m", "pytest", "-q", "-x", *alone, *shlex.split(tests)]
    if subprocess.run(command, check=False, stdout=STDERR).returncode:
        raise Mistake(f"`pytest {tests}` fails by itself: mend that first")
    tried = [_missed(each, command) if each.word == SURVIVES else each for each in result.mutations]
    return replace(result, mutations=tuple(tried))


def _missed(tried: Tried, command: Sequence[str]) -> Tried:
    option = f"--race-mutation={json.dumps(asdict(tried.mutation))}"
    done = subprocess.run([*command, option], check=False, stdout=STDERR)
    if done.returncode == NOT_MADE:
        if tried.mutation.line:
            return replace(tried, told="no test sends it")
        return replace(tried, word=UNDECIDED, told="no schedule breaks; none of the tests makes its table")
    return replace(tried, word=BY_A_TEST) if done.returncode == 1 else replace(tried, told="nor does a test")


def explored(name: str, bounds: Mapping[str, Any], replay: str = "") -> list[Result]:
    """Run the scenario `module:function`: what it explores, or else all of it. `replay`: only this schedule."""
    scenario = found(name)
    race = Race(name, again=again(name, bounds), replay=replay, **project_of(None), **bounds)
    with suppress(NotKept):
        try:
            signature(scenario).bind(race)
        except TypeError:
            raise Mistake(
                f"{name} is not a scenario: a scenario takes exactly one argument, `race`"
            ) from None
        _ask(name, scenario, race)
        if not race.results:
            race.explore()
    return race.results


def _ask(name: str, scenario: Any, race: Race) -> None:
    """Raises Mistake: the scenario itself does not work."""
    try:
        scenario(race)
    except (Mistake, NotKept, AssertionError):
        raise
    except Exception as error:
        raise Mistake(f"the scenario {name} raised {told_at(error, line_of(error))}") from error


def again(name: str, bounds: Mapping[str, Any]) -> str:
    """How its schedules are seen again, within the same bounds."""
    faults, most = bounds.get("faults", 0), dict(bounds.get("most", ()))
    words = [word for word, kinds in FAULT_WORDS.items() if kinds <= bounds.get("kinds", frozenset())]
    given = (
        f" --faults {faults}"
        if len(words) == len(FAULT_WORDS)
        else "".join(f" --{w} {most.get(FAULT_WORDS[w], faults)}" for w in words)
    )
    given = given.replace("_", "-") if faults else ""
    return (
        f"lost-update-lab replay {name}/{{id}}"
        + given
        + " --no-deadlocks" * (not bounds.get("deadlocks", True))
        + (f" --slack {bounds['slack']:g}" if "slack" in bounds else "")
    )


def found(name: str) -> Any:
    """The thing that a user names as `module:thing`. Raises Mistake."""
    module, _, thing = name.partition(":")
    if not module or not thing:
        raise Mistake(f"expected module:name, for example shop.scenarios:voucher; got {name!r}")
    loaded = _loaded(module, name)
    try:
        thing_found = attrgetter(thing)(loaded)
    except AttributeError as error:
        raise Mistake(NOT_FOUND.format(name, error)) from None
    if not callable(thing_found):
        raise Mistake(f"{name} is not callable: it is a {type(thing_found).__name__}")
    return thing_found


def _loaded(module: str, name: str) -> ModuleType:
    try:
        return import_module(module)
    except Mistake:
        raise
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            raise Mistake(NOT_FOUND.format(name, error)) from None
        raise Mistake(f"{module} cannot be loaded: {told_at(error, line_of(error))}") from error


def bounds_of(given: argparse.Namespace) -> dict[str, Any]:
    """The bounds that the command line sets, and the scenario need not."""
    named = {word: getattr(given, word) for word in FAULT_WORDS if getattr(given, word)}
    bounds: dict[str, Any] = {}
    if given.faults is not None or named:
        bounds |= limits_of(given.faults or 0, named)
    if given.no_deadlocks:
        bounds["deadlocks"] = False
    bounds |= {name: value for name in ("budget", "slack") if (value := getattr(given, name)) is not None}
    if getattr(given, "mutate", False):
        bounds["mutate"] = True
    return bounds
