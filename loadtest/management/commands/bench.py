"""`manage.py bench PART`: measurements against peers and floors, in one run. loadtest/bench/parts.py lists the
parts."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand
from django.db import ProgrammingError
from rich.console import Console
from rich.markup import escape

from ledger.addresses import NoServers
from loadtest.bench import output
from loadtest.bench.children import ChildFailed
from loadtest.bench.explorer.peer import PEER
from loadtest.bench.measured import Measured
from loadtest.bench.parts import PARTS, Part
from loadtest.commandline.program import end_as_ctrl_c
from loadtest.commandline.subjects import add_output, usage, writable
from loadtest.report.console import console, show, tell
from loadtest.report.files import renew
from loadtest.servers import ServerError, embedded
from loadtest.verdict.claims import Exit


class Command(BaseCommand):
    help = "Measure locks, strategies and the explorer against their peers, in one run."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
        for name, part in PARTS.items():
            own = parts.add_parser(name, help=part.about, description=part.about)
            part.add_arguments(own)
            add_output(own)
            own.add_argument("--json", action="store_true", help="print bench.json instead of the tables")

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure, write bench.json and the drawings, and print.

        Raises CommandError. Raises SystemExit(1) if a balance is wrong or a lock admitted two holders, because
        figures of a contender that loses money are worthless. Raises SystemExit(3) if a contender failed or has no
        verdict.
        """
        part, found = PARTS[options["part"]], Measured()
        plan = part.plan(options)
        writable(options["output"])
        end_as_ctrl_c()
        try:
            with embedded.held(), Console(stderr=True).status("starting") as status:
                part.run(plan, found, lambda text: status.update(escape(text)))
        except BaseException as error:
            if found.results:  # the earlier measurements are still valid
                found.notes.append(f"The run ended early: {error!r}")
                self.tell(part, found, options)
            if isinstance(error, NoServers | ServerError | ChildFailed):
                raise usage(error) from error
            if isinstance(error, ProgrammingError):
                raise usage(f"run `python manage.py migrate` first: {error}") from error
            raise
        self.tell(part, found, options)
        ours = [row for row in found.results if row["strategy"] != PEER]
        if any(row.get("right") is False for row in ours):
            raise SystemExit(Exit.DISAGREES)
        if any(row.get("verdict") == "inconclusive" for row in ours):
            raise SystemExit(Exit.INCONCLUSIVE)

    def tell(self, part: Part, found: Measured, options: dict[str, Any]) -> None:
        """Write the files and print."""
        folder, goals = options["output"], list(part.judge(found.results))
        file = folder / "bench.json"
        whole = output.write(options["part"], found, goals, file)
        drawings = part.drawn(found.results, folder)
        files = [*(f"Written: {path}" for path in (file, *drawings)), *renew(folder)]
        if options["json"]:
            tell(self, whole, files)
            return
        unsaid = (
            [found.warning] if found.warning and not goals else []
        )  # otherwise it is printed below the goals
        show(console(self.stdout), part.all_tables(found, goals), [*unsaid, *found.notes, *files])
