"""The options that every measuring command shares: which subjects, and where the results go."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from django.core.management import CommandError

from ledger.strategies import CONTROL, Locked, find, known
from loadtest.commandline.arguments import writable_folder
from loadtest.commandline.called_once import complaint
from loadtest.verdict.claims import Exit

EXIT_CODES = (
    "Exit code 0: the evidence agrees with the claims (your own lock claims contention, and whatever is in its "
    "`withstands`); 1: it does not; 2: bad usage, or a server is missing; 3: inconclusive on at least one claim, or "
    "nothing that was asked for could run."
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add --strategy, --lock, --output and --json, and what the exit codes of all measuring commands say."""
    parser.epilog = EXIT_CODES
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
    add_output(parser)
    parser.add_argument("--json", action="store_true", help="print the results as JSON instead of the table")


def add_output(parser: ArgumentParser) -> None:
    """Add --output. A command that takes it calls `writable` before the work begins."""
    parser.add_argument(
        "--output", type=Path, default=Path("report"), metavar="DIR", help="where the results go (report/)"
    )


def writable(folder: Path, option: str = "--output") -> None:
    """Make `folder`, and see that a file can be written there. Raises CommandError."""
    try:
        writable_folder(folder)
    except ValueError as error:
        raise usage(f"{option} {error}") from error


def there(files: Sequence[Path], command: str) -> None:
    """See that the files which somebody names are there. Raises CommandError."""
    if missing := [str(each) for each in files if not each.is_file()]:
        raise usage(f"no file {', '.join(missing)}: `python manage.py {command}` writes one")


def usage(message: object) -> CommandError:
    """Return the error for bad usage: exit code 2, with a message that says what to do."""
    return CommandError(str(message), returncode=int(Exit.USAGE))


def unknown(kind: str, name: str, names: Iterable[str]) -> CommandError:
    """Return the error for a `name` that is none of `names`: first the one that was probably meant."""
    names = tuple(names)
    meant = get_close_matches(name, names, 1)
    guess = f": did you mean {meant[0]}?" if meant else "."
    return usage(f"no {kind} {name!r}{guess} Known: {', '.join(names)}")


def subjects(options: dict[str, Any], default: Sequence[str]) -> tuple[str, ...]:
    """Return the strategies that were asked for, the control first, each once. Raises CommandError."""
    return tuple(dict.fromkeys([CONTROL, *(wanted(options) or default)]))


def wanted(options: dict[str, Any]) -> tuple[str, ...]:
    """Return what --strategy and --lock name, each once; what they name is there. Raises CommandError."""
    for spec in options["lock"]:
        if wrong := _misspelt(spec):
            raise usage(f"--lock {spec}: {wrong}")
    _look_here()
    named = tuple(dict.fromkeys([*options["strategy"], *options["lock"]]))
    for slug in named:
        if ":" not in slug and slug not in known():
            raise unknown("strategy", slug, known())
        try:
            found = find(slug)
        except LookupError as error:
            raise usage(error) from error
        if ":" in slug and issubclass(found, Locked) and (wrong := complaint(found.factory)):
            raise usage(f"--lock {slug} {wrong}")
    return named


def gates(options: dict[str, Any]) -> tuple[str, ...]:
    """Return what --gate names. Raises CommandError for one that cannot be imported: here, not in every lane."""
    _look_here()
    for name in options["gate"]:
        try:
            resolve_name(name)
        except (Exception, SystemExit) as error:  # as of a lock
            raise usage(f"--gate {name}: {error}; write module:callable (docs/explorer.md)") from error
    return tuple(options["gate"])


def _look_here() -> None:
    """A third-party module lies where the command was given."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def _misspelt(spec: str) -> str:
    """Return what is wrong with how a lock is named, or ""."""
    module, colon, path = spec.partition(":")
    if not (module and colon and path):
        return "write module:callable, for example mylocks.redis:lock"
    if os.sep in module or module.startswith(".") or module.endswith(".py"):
        file = Path(module.removesuffix(".py"))
        if file.is_absolute():
            return f"write {file.name}:{path} in {file.parent}, or with PYTHONPATH={file.parent}: without .py or a path"
        parts = [part for part in file.parts if part.isidentifier()]
        return f"write {'.'.join(parts) or 'mylocks'}:{path}, the module as an import names it, without .py or a path"
    return ""
