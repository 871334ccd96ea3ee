"""`lost-update-lab replay ID`: a schedule again, in the order in which it broke; or as a test to keep."""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from lost_update_lab.command.explore import bounds_of, explored, found
from lost_update_lab.command.trust import bank, on_trial, trusted
from lost_update_lab.scenarios.reports import page
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.scenarios.schedule import OF_LETTER
from lost_update_lab.under_test.scenario import FAULT_WORDS, Mistake

#: exit codes of pytest
PASSED, FAILED = 0, 1
REMEDY = "An id looks like shop.scenarios:voucher/v/3a2, or like test_voucher.py::test_a_voucher/v/3a2"
#: the trial of a lock (trust.py), as a function that takes `race`
ON_TRIAL = """
def test_{title}(race):
    bank(race, {lock}, workers={workers})
    race.explore(faults=1, control=False)
"""


def replay(given: argparse.Namespace) -> int:
    """Returns 0 if the same came again."""
    of, letter, schedule = parted(given.id)
    if given.as_test:
        print(as_test(of, f"{letter}/{schedule}", _given(given)))
        return 0
    if "::" in of:
        return _test(of, f"{letter}/{schedule}", given.page)
    bounds = bounds_of(given)
    if lock := on_trial(of):
        results = trusted(*lock, bounds, f"{letter}/{schedule}")
    else:
        results = explored(of, bounds, f"{letter}/{schedule}")
    print("\n\n".join(map(str, results)))
    if given.page:
        Path(given.page).write_text(page(results), encoding="utf-8")
    return _again(letter, [result.verdict for result in results], given.page)


def _test(of: str, schedule: str, target: str | None) -> int:
    """The same for a schedule of a test. `target`: the file for its page. Raises Mistake if pytest could not run it."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder, "told.json")
        command = [sys.executable, "-m", "pytest", of, f"--race-replay={schedule}", "-q", "-s"]
        pages = [f"--race-page={folder}"] if target else []
        done = subprocess.run([*command, *pages, f"--race-json={told}"], check=False)
        results = json.loads(told.read_text(encoding="utf-8"))["results"] if told.exists() else []
        made = [shutil.copy(each, str(target)) for each in Path(folder).glob("*.html")]
    if done.returncode not in (PASSED, FAILED):
        raise Mistake(
            f"pytest ended with code {done.returncode} instead of running {of}; its own words stand above. If the "
            "test has another name or place now, name that in the id; give the path from the folder in which you are"
        )
    return _again(schedule, [each["verdict"] for each in results], target if made else None)


def _again(schedule: str, verdicts: Sequence[str], shown: str | None) -> int:
    """Returns 0 if the schedule came to what its id says. Else it is told what came. `shown`: the page that was
    written."""
    if shown:
        print(f"\nPage: {shown}")
    if (word := OF_LETTER.get(schedule[:1], KEPT)) in verdicts:
        print(f"\nThe same came again: {word}.")
        return 0
    came = f"comes to {' and '.join(verdicts)} now" if verdicts else "was not run"
    print(
        f"lost-update-lab: not the same again: the id says {word}, and this order {came}. The code or its bounds have "
        "changed: explore again",
        file=sys.stderr,
    )
    return 1


def parted(name: str) -> tuple[str, str, str]:
    """Returns the scenario or the test, the verdict's letter, and the schedule. Raises Mistake."""
    of, letter, schedule = [*name.rsplit("/", 2), "", ""][:3]
    if len(letter) != 1 or ":" not in of:
        raise Mistake(f"not a schedule id: {name!r}. {REMEDY}")
    return of, letter, schedule


def as_test(of: str, schedule: str, bounds: Mapping[str, float] | None = None) -> str:
    """The source of a pytest function that runs only this schedule. `bounds`: those of the command line, by their names
    as arguments of `race.replay`. They win over those of the scenario."""
    lines, source = _written(of)
    title = "".join(c if c.isalnum() else "_" for c in schedule.partition("/")[2]) or "first"
    tree = ast.parse(source)
    (replaying := _Replaying(schedule, bounds or {})).visit(tree)
    (test,) = tree.body
    assert isinstance(test, ast.FunctionDef)
    if not replaying.found:
        names = [each.arg for each in test.args.args]
        race = names[0] if names and "race" not in names else "race"
        test.body += replaying.visit(ast.parse(f"{race}.explore()")).body
    test.name = f"{test.name if test.name.startswith('test_') else 'test_' + test.name}_in_the_order_{title}"
    return "\n".join([*lines, ast.unparse(ast.fix_missing_locations(tree)), ""])


def _given(given: argparse.Namespace) -> dict[str, float]:
    named = {name: getattr(given, name) for name in ("faults", "budget", "slack")}
    words = {word: getattr(given, word) or None for word in FAULT_WORDS}
    off = {"deadlocks": False if given.no_deadlocks else None}
    return {name: value for name, value in {**named, **words, **off}.items() if value is not None}


def _written(of: str) -> tuple[list[str], str]:
    """The imports of a test, and the source of the function that explores. Raises Mistake."""
    if "::" in of:
        return _of_a_test(of)
    name, workers = on_trial(of) or (of, 0)
    module, _, function = name.partition(":")
    thing = found(name)
    if name == of:
        source = _source(inspect.getsource(thing), function)
        return [*_imports(module, source, thing.__globals__), "", ""], source
    lines = [
        f"from {bank.__module__} import {bank.__name__}",
        f"from {module} import {function.partition('.')[0]}",
    ]
    return [*lines, "", ""], ON_TRIAL.format(title=function.replace(".", "_"), lock=function, workers=workers)


def _of_a_test(of: str) -> tuple[list[str], str]:
    """As `_written`. What cannot be pasted as it stands is told in a comment."""
    name, _, case = of.partition("[")
    path, *classes, function = name.split("::")
    if not Path(path).is_file():
        raise Mistake(f"there is no file {path} here: give its path from the folder in which you are")
    within = [f"# a method: paste it into {'.'.join(classes)}"] if classes else []
    only = [f"# broken for [{case}: leave only this case to `parametrize`"] if case else []
    return [*within, *only], _source(Path(path).read_text(encoding="utf-8"), *classes, function)


def _imports(module: str, source: str, known: Mapping[str, Any]) -> list[str]:
    """Of what the scenario uses: modules as themselves, everything else from its own module."""
    (function,) = ast.parse(source).body
    loaded = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    used = sorted(name for name in loaded if name in known)
    modules = {name: known[name].__name__ for name in used if isinstance(known[name], ModuleType)}
    named = [name for name in used if name not in modules]
    lines = [
        f"import {full}" if name == full else f"import {full} as {name}" for name, full in modules.items()
    ]
    return [*lines, *([f"from {module} import {', '.join(named)}"] if named else [])]


def _source(text: str, *path: str) -> str:
    """`path`: the name of a function, after those of the classes around it. Raises Mistake."""
    tree: ast.AST = ast.parse(textwrap.dedent(text))
    for name in path:
        kind = ast.FunctionDef if name == path[-1] else ast.ClassDef
        named = (each for each in ast.walk(tree) if isinstance(each, kind) and each.name == name)
        if (inner := next(named, None)) is None:
            raise Mistake(
                f"there is no {'function' if kind is ast.FunctionDef else 'class'} {name} there any more"
            )
        tree = inner
    return textwrap.dedent(ast.unparse(tree))


class _Replaying(ast.NodeTransformer):
    """`race.explore(…)` → `race.replay(schedule, …)`, within these bounds."""

    def __init__(self, schedule: str, bounds: Mapping[str, float]) -> None:
        self.schedule, self.bounds, self.found = schedule, bounds, False
        faults = {"faults", *FAULT_WORDS}
        #: the arguments that give way: whoever bounds any faults bounds all of them
        self.instead_of = faults | bounds.keys() if faults & bounds.keys() else bounds.keys()

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "explore":
            node.func.attr, self.found = "replay", True
            node.args.insert(0, ast.Constant(self.schedule))
            node.keywords = [each for each in node.keywords if each.arg not in self.instead_of]
            node.keywords += [ast.keyword(name, ast.Constant(value)) for name, value in self.bounds.items()]
        return node
