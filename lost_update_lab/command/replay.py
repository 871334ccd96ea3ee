"""`lost-update-lab replay ID`: a schedule again, in the order in which it broke; or as a test to keep."""

from __future__ import annotations

import argparse
import ast
import inspect
import subprocess
import sys
import textwrap
from pathlib import Path

from lost_update_lab.command.explore import bounds_of, explored, found
from lost_update_lab.command.trust import PREFIX, trusted
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.subject.scenario import Mistake

REMEDY = "An id looks like shop.scenarios:voucher/v/3a2, or like test_voucher.py::test_a_voucher/v/3a2"


def replay(given: argparse.Namespace) -> int:
    """Returns 0 if the same came again."""
    of, letter, schedule = parted(given.id)
    if given.as_test:
        print(as_test(of, f"{letter}/{schedule}"))
        return 0
    if "::" in of:
        command = [sys.executable, "-m", "pytest", of, f"--race-replay={letter}/{schedule}", "-q", "-s"]
        done = subprocess.run(command, check=False)
        return {0: 1, 1: 0}.get(done.returncode, done.returncode)  # the test has to fail
    bounds = bounds_of(given)
    if of.startswith(PREFIX):
        results = trusted(of.removeprefix(PREFIX), bounds, f"{letter}/{schedule}")
    else:
        results = explored(of, bounds, f"{letter}/{schedule}")
    print("\n\n".join(map(str, results)))
    return int(all(result.verdict == KEPT for result in results))


def parted(name: str) -> tuple[str, str, str]:
    """Returns the scenario or the test, the verdict's letter, and the schedule. Raises Mistake."""
    of, letter, schedule = [*name.rsplit("/", 2), "", ""][:3]
    if len(letter) != 1 or ":" not in of:
        raise Mistake(f"{name!r} is no id of a schedule. {REMEDY}")
    return of, letter, schedule


def as_test(of: str, schedule: str) -> str:
    """The source of a pytest function that runs only this schedule."""
    title = "".join(c if c.isalnum() else "_" for c in schedule.partition("/")[2]) or "first"
    if "::" not in of:
        module, _, function = of.partition(":")
        source = _source(inspect.getsource(found(of)), function)
        lines = [f"from {module} import *  # noqa: F403  (what the scenario uses)", "", ""]
    else:
        path, _, function = of.partition("::")
        source, lines = _source(Path(path).read_text(encoding="utf-8"), function.rpartition("::")[2]), []
    tree = ast.parse(source)
    (replaying := _Replaying(schedule)).visit(tree)
    (test,) = tree.body
    assert isinstance(test, ast.FunctionDef)
    if not replaying.found:
        race = test.args.args[0].arg if test.args.args else "race"
        test.body += ast.parse(f"{race}.replay({schedule!r})").body
    test.name = f"{test.name if test.name.startswith('test_') else 'test_' + test.name}_in_the_order_{title}"
    return "\n".join([*lines, ast.unparse(ast.fix_missing_locations(tree)), ""])


def _source(text: str, function: str) -> str:
    for node in ast.walk(ast.parse(textwrap.dedent(text))):
        if isinstance(node, ast.FunctionDef) and node.name == function.partition("[")[0]:
            return textwrap.dedent(ast.unparse(node))
    raise Mistake(f"there is no function {function} there any more")


class _Replaying(ast.NodeTransformer):
    """`race.explore(…)` → `race.replay(schedule, …)`."""

    def __init__(self, schedule: str) -> None:
        self.schedule, self.found = schedule, False

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "explore":
            node.func.attr, self.found = "replay", True
            node.args.insert(0, ast.Constant(self.schedule))
        return node
