"""The options that every measuring command shares: which subjects, and where the results go."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.core.management import CommandError

from ledger.strategies import CONTROL, find
from loadtest.claims import Exit


def add_arguments(parser: ArgumentParser) -> None:
    """Add --strategy, --lock, --output and --json."""
    parser.add_argument(
        "--strategy", action="append", default=[], metavar="SLUG", help="a strategy; may be repeated"
    )
    parser.add_argument(
        "--lock",
        action="append",
        default=[],
        metavar="MODULE:CALLABLE",
        help="your own lock, under the plain strategy; may be repeated. Without --strategy only it and the control run",
    )
    parser.add_argument(
        "--output", type=Path, default=Path("report"), metavar="DIR", help="where the results go (report/)"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON instead of the table")


def usage(message: object) -> CommandError:
    """Return the error for bad usage: exit code 2, with a message that says what to do."""
    return CommandError(str(message), returncode=int(Exit.USAGE))


def subjects(options: dict[str, Any], default: Sequence[str]) -> tuple[str, ...]:
    """Return the strategies that were asked for, the control first, each once. Raises CommandError."""
    return tuple(dict.fromkeys([CONTROL, *(wanted(options) or default)]))


def wanted(options: dict[str, Any]) -> tuple[str, ...]:
    """Return what --strategy and --lock name, each once; what they name is there. Raises CommandError."""
    for spec in options["lock"]:
        if ":" not in spec:
            raise usage(f"--lock {spec}: write module:callable, for example mylocks.redis:lock")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # a stranger's module lies where the command was given
    named = tuple(dict.fromkeys([*options["strategy"], *options["lock"]]))
    for slug in named:
        try:
            find(slug)
        except LookupError as error:
            raise usage(error) from error
    return named
