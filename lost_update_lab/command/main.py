"""`lost-update-lab explore | trust | replay | suggest`: operations and locks on trial, in a terminal and in CI."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

from lost_update_lab.command.explore import explore
from lost_update_lab.command.replay import replay
from lost_update_lab.command.suggest import suggest
from lost_update_lab.command.trust import BUDGET, trust
from lost_update_lab.scenarios.reports import junit, markdown, page
from lost_update_lab.scenarios.result import INCONCLUSIVE, KEPT, Result
from lost_update_lab.under_test.scenario import FAULT_WORDS, Mistake

OK, BROKEN, USAGE, UNDECIDED = 0, 1, 2, 3
STOPPED, UNREAD = 130, 141  # as a shell has them: Ctrl-C, and a pipe that nobody reads any more
EXIT_CODES = (
    "Exit codes: 0: kept. 1: some order breaks it. 2: bad usage, or a scenario that cannot be explored as it is "
    "written. 3: inconclusive. 130: Ctrl-C."
)
REPLAY_CODES = "Exit codes: 0: the same came again. 1: it did not. 2: bad usage."
SUGGEST_CODES = (
    "Exit codes: 0: the pairs are listed. 1: with --confirm, one of them breaks. 2: bad usage. 3: with --confirm, none "
    "breaks, and some could not be decided."
)
#: of each fault, what happens
FAULT_HELP = {
    "crashes": "a worker dies before any of its commands",
    "pauses": "a worker stands still while time passes: its leases end",
    "lost_replies": "a command, even COMMIT, is executed, and its reply is lost",
    "failovers": "a replica of Redis takes over without the last writes",
    "clock_jumps": "the clock of a server, or of a worker, is set forward or back",
    "thread_deaths": "a thread beside the worker's main one dies alone, or outlives it",
}


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    sys.path.insert(0, str(Path.cwd()))
    try:
        code = _run(given)
        sys.stdout.flush()
    except BrokenPipeError:  # `… | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    return code


def _run(given: argparse.Namespace) -> int:
    try:
        _check_files(given)
        found = given.run(given)
        if not isinstance(found, int):
            _tell(given, found)
    except Mistake as mistake:
        print(f"lost-update-lab: {mistake}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt as stopped:
        print(f"lost-update-lab was interrupted. {stopped}".rstrip(), file=sys.stderr)
        return STOPPED
    if isinstance(found, int):
        return found
    words = {result.verdict for result in found}
    return OK if words <= {KEPT} else UNDECIDED if words <= {KEPT, INCONCLUSIVE} else BROKEN


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="lost-update-lab", description=__doc__)
    commands = made.add_subparsers(required=True, metavar="COMMAND")
    exploring = commands.add_parser("explore", help="every order of a scenario's commands", epilog=EXIT_CODES)
    exploring.add_argument("scenario", metavar="MODULE:SCENARIO", help="a function that takes `race`")
    exploring.add_argument(
        "--mutate",
        action="store_true",
        help="remove each protection in turn, and list those that no schedule needs",
    )
    exploring.add_argument(
        "--tests",
        metavar="PYTEST",
        default="",
        help="with --mutate: run these tests (arguments for pytest) with each mutation that no schedule caught",
    )
    exploring.set_defaults(run=explore)
    trusting = commands.add_parser("trust", help="can I trust this lock with money?", epilog=EXIT_CODES)
    trusting.add_argument("lock", metavar="MODULE:LOCK", help="takes a name and gives a context manager")
    told = "how many callers the lock has: 2, or 3, which takes longer (2)"
    trusting.add_argument("--workers", type=int, choices=(2, 3), default=2, help=told)
    trusting.set_defaults(run=trust)
    for each in (exploring, trusting):
        _bounds(each)
        _output(each)
    _suggesting(commands)
    replaying = commands.add_parser("replay", help="one schedule again, by its id", epilog=REPLAY_CODES)
    replaying.add_argument("id", help="as an exploration printed it")
    replaying.add_argument(
        "--as-test", action="store_true", help="print a pytest function that plays just this order"
    )
    _page(replaying)
    _bounds(replaying)
    replaying.set_defaults(run=replay)
    return made


def _suggesting(commands: Any) -> None:
    suggesting = commands.add_parser(
        "suggest", help="which operations of my test suite to put on trial", epilog=SUGGEST_CODES
    )
    suggesting.add_argument(
        "pytest", nargs="*", metavar="PYTEST", help="arguments for pytest: which tests to run"
    )
    suggesting.add_argument(
        "--confirm", action="store_true", help="explore each pair, and keep what is broken"
    )
    suggesting.add_argument(
        "--all",
        action="store_true",
        help="also the pairs that your tests called for other rows of the same table",
    )
    suggesting.add_argument(
        "--output", metavar="FILE", default="test_races.py", help="gets the scenarios (%(default)s)"
    )
    suggesting.add_argument("--json", action="store_true", help="print the pairs as JSON")
    suggesting.set_defaults(run=suggest)


def _bounds(command: argparse.ArgumentParser) -> None:
    told = "how many faults of any kind may happen in one schedule"
    command.add_argument("--faults", type=int, metavar="N", help=told)
    for word in FAULT_WORDS:
        option = f"--{word.replace('_', '-')}"
        command.add_argument(option, type=_count, default=0, metavar="N", help=FAULT_HELP[word])
    command.add_argument(
        "--no-deadlocks", action="store_true", help="leave a schedule where the server would end a deadlock"
    )
    told = f"of real time, for each search (60; trust: {BUDGET:g} in all)"
    command.add_argument("--budget", type=_seconds, metavar="SECONDS", help=told)
    told = "how late a worker may be without a pause, in virtual time (0.1)"
    command.add_argument("--slack", type=partial(_seconds, least=0.0), metavar="SECONDS", help=told)


def _count(text: str) -> int:
    if not (text.isdecimal() and (count := int(text)) >= 1):
        raise argparse.ArgumentTypeError("must be 1 or more (to leave this fault out, omit the option)")
    return count


def _seconds(text: str, least: float = 0.001) -> float:
    with suppress(ValueError):
        if isfinite(seconds := float(text)) and seconds >= least:
            return seconds
    raise argparse.ArgumentTypeError(f"must be a number of seconds, {least:g} or more")


def _output(command: argparse.ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print the results as JSON")
    command.add_argument("--summary", metavar="FILE", help="write a summary in Markdown, for a pull request")
    command.add_argument("--junit", metavar="FILE", help="write JUnit XML, for CI")
    _page(command)


def _page(command: argparse.ArgumentParser) -> None:
    told = "write an HTML page that steps through the order"
    command.add_argument("--page", metavar="FILE", help=told)


def _check_files(given: argparse.Namespace) -> None:
    """Before a search that may take a minute. Raises Mistake."""
    for name in ("summary", "junit", "page"):
        path = Path(getattr(given, name, None) or "result")
        if path.is_dir() or not path.absolute().parent.is_dir():
            raise Mistake(f"--{name} {path}: no file can be written there. Name one in a folder that exists")


def _tell(given: argparse.Namespace, results: Sequence[Result]) -> None:
    if given.json:
        print(json.dumps({"results": [result.to_json() for result in results]}, indent=2, default=str))
    else:
        print("\n\n".join(map(str, results)))
    for path, write in ((given.summary, markdown), (given.junit, junit), (given.page, page)):
        if path:
            try:
                Path(path).write_text(write(results), encoding="utf-8")
            except OSError as error:
                raise Mistake(f"the result could not be written to {path}: {error.strerror}") from None


if __name__ == "__main__":
    sys.exit(main())
