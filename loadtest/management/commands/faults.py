"""`manage.py faults`: inject each hazard into real processes and servers, for each strategy."""

from __future__ import annotations

import random
from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand, CommandError
from django.db import connections
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ledger.strategies import CARD, STRATEGIES
from loadtest.commandline import subjects
from loadtest.commandline.arguments import whole_number
from loadtest.commandline.program import end_as_ctrl_c
from loadtest.faults import chosen
from loadtest.faults.cell import Cell, as_json
from loadtest.faults.hazards import ADVERSARIES
from loadtest.faults.hazards.crash import CrashHolding
from loadtest.faults.matrix import MatrixPlan, matrix
from loadtest.faults.scene.site import private_servers
from loadtest.report.console import console, show, tell
from loadtest.report.faults import remarks
from loadtest.report.faults_table import tables
from loadtest.report.files import keep
from loadtest.report.terminal import stopped
from loadtest.servers import ServerError
from loadtest.trials import records
from loadtest.trials.case import skipped
from loadtest.trials.rehearsal import NotTaken, rehearse
from loadtest.verdict.claims import exit_code
from loadtest.verdict.words import STOPPED


class Command(BaseCommand):
    help = (
        "Inject every hazard under every strategy, on servers of its own, and show what is left of the money."
    )
    requires_system_checks: list[str] = []
    files: list[str]

    def add_arguments(self, parser: ArgumentParser) -> None:
        subjects.add_arguments(parser)
        parser.add_argument(
            "--hazard",
            action="append",
            default=[],
            metavar="NAME",
            help=f"a hazard; may be repeated (all). One of: {', '.join(ADVERSARIES)}",
        )
        parser.add_argument("--quick", action="store_true", help="only the six strategies of `make demo`")
        parser.add_argument(
            "--repeat", type=whole_number(1000), default=1, help="how often each cell is run (1)"
        )
        parser.add_argument("--seed", type=int, help="seed of the amounts and pauses (random, and recorded)")

    def handle(self, *args: Any, **options: Any) -> None:
        plan = _plan(options)
        subjects.writable(options["output"])
        end_as_ctrl_c()
        try:
            report = self.measure(plan, options)
        except (ServerError, NotTaken) as error:
            raise subjects.usage(error) from error
        except KeyboardInterrupt:  # before the first cell: later ones keep what was measured
            raise CommandError("stopped. No results are written.", returncode=130) from None
        self.show(report, options)
        if report["stopped"]:
            raise SystemExit(130)
        if code := exit_code(report["results"]):
            raise SystemExit(int(code))

    def measure(self, plan: MatrixPlan, options: dict[str, Any]) -> dict[str, Any]:
        """Run all cells, with a progress bar on the terminal. Ctrl-C keeps what was measured."""
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        found: dict[tuple[str, str], dict[str, Any]] = {}
        with Progress(*columns, console=Console(stderr=True, emoji=False), transient=True) as progress:
            bar = progress.add_task("starting the servers", total=len(plan.cells()))
            with private_servers(*plan.servers()) as site:
                for strategy in plan.strategies:
                    if warning := rehearse(Cell(strategy, CrashHolding, plan.seed, strikes=False).case()):
                        progress.console.print(escape(warning), highlight=False)
                row = records.begin(
                    "faults", workload="deposits", store="postgres", adversary="faults", plan=plan.as_json()
                )
                told = lambda cells: progress.update(  # noqa: E731
                    bar, description=escape(f"{cells[0].strategy} × {cells[0].hazard.slug}")
                )
                try:
                    for data in matrix(plan, site, told):
                        found[data["strategy"], data["hazard"]] = data
                        progress.advance(bar)
                        if data["verdict"] != "not-run":
                            line = f"  {data['strategy']} × {data['hazard']}: {data['verdict']}"
                            progress.console.print(escape(line), highlight=False)
                except KeyboardInterrupt:
                    progress.console.print("  stopped", highlight=False)
                connections.close_all()  # PostgreSQL may have been restarted
                results = _in_order(plan, found)
                report = records.report_of(row, results, stopped=len(found) < len(results))
                self.files = keep(report, options["output"] / "faults.json")
                records.close(row)
                return report

    def show(self, report: dict[str, Any], options: dict[str, Any]) -> None:
        if options["json"]:
            tell(self, report, self.files)
            return
        results = report["results"]
        on = console(self.stdout, width=130)  # the whole matrix fits side by side
        show(on, tables(results, on.width), [*remarks(results), *stopped(results), *self.files])


def _in_order(plan: MatrixPlan, found: dict[tuple[str, str], dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the results of all cells of the plan. Cells that a stopped run did not reach are `not-run`."""
    return [
        found.get((cell.strategy, cell.hazard.slug)) or as_json(cell, skipped(cell.case(), STOPPED), [])
        for cell in plan.cells()
    ]


def _plan(options: dict[str, Any]) -> MatrixPlan:
    seed = options["seed"] if options["seed"] is not None else random.randrange(2**31)  # noqa: S311
    return MatrixPlan(
        strategies=subjects.subjects(options, CARD if options["quick"] else tuple(STRATEGIES)),
        hazards=chosen.hazards(options) or tuple(ADVERSARIES),
        repeat=options["repeat"],
        seed=seed,
    )
