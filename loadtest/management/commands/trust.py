"""`manage.py trust`: one lock through compare, explore and faults, on servers of its own, and the answer.

`compare`, `explore` and `faults` run one after the other, each as a process of its own, and keep what they write.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError

from ledger.addresses import BASE_DIR
from loadtest.commandline import subjects
from loadtest.commandline.arguments import typed
from loadtest.commandline.durations import length
from loadtest.commandline.program import end_as_ctrl_c
from loadtest.faults import chosen
from loadtest.report.card import JUDGING_COMMANDS, Card, card, report_of, sentences, table
from loadtest.report.console import console, show, tell
from loadtest.report.files import renew
from loadtest.servers import ServerError
from loadtest.servers.children import child_environment
from loadtest.servers.embedded import migrate, using
from loadtest.trials import records
from loadtest.verdict.claims import Exit
from lost_update_lab.embedded.reaper import REAPER

#: exit codes of the three commands, the gravest first: the gravest is the exit code of `trust`
GRAVEST = (Exit.DISAGREES, Exit.INCONCLUSIVE, Exit.AGREES)


class Command(BaseCommand):
    help = (
        "Put one lock through compare, explore and faults, and say whether to trust it with money. Takes two to four "
        "minutes, and up to ten if callers wait in vain."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        subjects.add_arguments(parser)
        parser.add_argument(
            "--seconds",
            type=typed(length),
            default=5.0,
            help="how long the load test runs for each strategy (5)",
        )
        parser.add_argument(
            "--budget",
            type=typed(length),
            default=60.0,
            metavar="SECONDS",
            help="the longest search for each strategy (60)",
        )
        parser.add_argument(
            "--gate",
            action="append",
            default=[],
            metavar="MODULE:CALLABLE",
            help="as for explore; may be repeated",
        )
        parser.add_argument(
            "--hazard",
            action="append",
            default=[],
            metavar="NAME",
            help="as for faults; may be repeated (all)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        named = subjects.wanted(options)
        if not named:
            raise subjects.usage("which lock? --lock mylocks:mine, or --strategy token")
        chosen.hazards(options)  # otherwise `explore` and `faults` would complain only after the swarm
        subjects.gates(options)
        folder = options["output"].absolute()
        subjects.writable(folder)
        end_as_ctrl_c()
        try:
            codes = [self._ask(command, named, folder, options) for command in JUDGING_COMMANDS]
        except ServerError as error:
            raise subjects.usage(error) from error
        except KeyboardInterrupt:
            raise CommandError(f"stopped. What was measured is in {folder}.", returncode=130) from None
        reports = {
            command: json.loads((folder / f"{command}.json").read_text()) for command in JUDGING_COMMANDS
        }
        report = report_of(
            named, reports, {name: options[name] for name in ("seconds", "budget", "gate", "hazard")}
        )
        records.write(report, folder / "trust.json")
        self._show([card(each, reports) for each in named], report, folder, options)
        if code := min(codes, key=GRAVEST.index):
            raise SystemExit(int(code))

    def _ask(self, command: str, named: tuple[str, ...], folder: Path, options: dict[str, Any]) -> Exit:
        """Run one of the commands. Its progress stays visible; its table is not printed. Raises CommandError."""
        words = ["--output", str(folder), *_each("--lock", [name for name in named if ":" in name])]
        words += _each("--strategy", [name for name in named if ":" not in name])
        own = {
            "compare": ["--seconds", f"{options['seconds']:g}"],
            "explore": ["--budget", f"{options['budget']:g}", *_each("--gate", options["gate"])],
            "faults": _each("--hazard", options["hazard"]),
        }
        with _servers(command):
            code = _ended([sys.executable, str(BASE_DIR / "manage.py"), command, *words, *own[command]])
        if code not in tuple(GRAVEST):
            raise CommandError(f"{command} ended with {code}", returncode=int(Exit.USAGE))
        return Exit(code)

    def _show(self, cards: list[Card], report: Any, folder: Path, options: dict[str, Any]) -> None:
        files = [f"Written: {folder / 'trust.json'}", *renew(folder)]
        if options["json"]:
            tell(self, report, files)
            return
        on = console(self.stdout)
        for each in cards:
            show(on, [table(each)], sentences(each))
        show(on, [], files)


def _ended(command: list[str]) -> int:
    """Run the command to its end, in a session of its own. Ctrl-C is passed on once, and the command ends its
    children."""
    process = subprocess.Popen(
        command, env=child_environment(), stdout=subprocess.DEVNULL, start_new_session=True
    )
    REAPER.watch(process.pid, signal.SIGTERM)
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
    finally:
        REAPER.forget(process.pid)


def _each(option: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


@contextmanager
def _servers(command: str) -> Iterator[None]:
    """Run the servers that `compare` needs. The other commands start their own."""
    if command != "compare":
        yield
        return
    with using():
        migrate()
        yield
