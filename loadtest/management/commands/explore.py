"""`manage.py explore`: every schedule of the real strategies, on servers of its own, and the table of findings."""

from __future__ import annotations

import json
import os
import shutil
from argparse import ArgumentParser
from dataclasses import replace
from typing import Any

from django.core.management import BaseCommand
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ledger.stores import STORES
from ledger.strategies import STRATEGIES, find
from loadtest.commandline import subjects
from loadtest.commandline.arguments import typed, whole_number
from loadtest.commandline.durations import length
from loadtest.commandline.program import end_as_ctrl_c
from loadtest.explorer.campaign import Campaign
from loadtest.findings.explored import HAZARD_OF, MISTAKE
from loadtest.findings.job import DECIDED, EXHAUSTED, Job
from loadtest.report.console import console, show, tell
from loadtest.report.explorer_table import not_kept, remarks, so_far, tables
from loadtest.report.files import keep
from loadtest.report.terminal import stopped
from loadtest.servers import ServerError
from loadtest.verdict.claims import Exit, exit_code
from loadtest.workloads import EXPLORED
from lost_update_lab.telling.diagram import diagram

DAY = 86_400_000  # ms
MOST_LANES = 64


class Command(BaseCommand):
    help = "Try every order of the commands of 2 or 3 workers, with faults as steps."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        subjects.add_arguments(parser)
        self._add_bounds(parser)
        parser.add_argument(
            "--lanes",
            type=whole_number(MOST_LANES),
            default=None,
            help="how many strategies to explore at once (all cores)",
        )
        parser.add_argument(
            "--gate",
            action="append",
            default=[],
            metavar="MODULE:CALLABLE",
            help="the gate of another client library (docs/explorer.md); may be repeated; --replay needs it too",
        )
        parser.add_argument(
            "--one-machine",
            action="store_true",
            help="workers are processes of one host and share its files; --replay needs it too",
        )
        parser.add_argument(
            "--require",
            type=typed(_hazards),
            default=(),
            metavar="HAZARDS",
            help="such as contention,crash-holding: exit code 1 unless each is kept, whatever is claimed",
        )
        parser.add_argument(
            "--replay",
            metavar="ID",
            help="replay one schedule: exit code 0 if it has the same verdict again, else 1",
        )

    @staticmethod
    def _add_bounds(parser: ArgumentParser) -> None:
        parser.add_argument("--workers", type=int, default=2, help="how many workers (2)")
        parser.add_argument("--faults", type=int, default=1, help="the most faults in one schedule (1)")
        parser.add_argument(
            "--work",
            type=whole_number(DAY, least=0),
            default=0,
            metavar="MS",
            help="how long the business logic takes between read and write (0)",
        )
        parser.add_argument(
            "--slack",
            type=whole_number(DAY, least=0),
            default=100,
            metavar="MS",
            help="how late a worker may be without a fault (100)",
        )
        parser.add_argument(
            "--store", choices=STORES, help="where the accounts are kept (PostgreSQL, where they can be)"
        )
        parser.add_argument(
            "--workload", choices=EXPLORED, default="deposits", help="what the workers do (deposits)"
        )
        parser.add_argument(
            "--budget",
            type=typed(length),
            metavar="SECONDS",
            help="the longest search for each strategy (300)",
        )
        parser.add_argument(
            "--until",
            choices=(DECIDED, EXHAUSTED),
            help="decided: stop at the first schedule that loses money under a fault that is not claimed (the default "
            "for all strategies); exhausted: search every schedule (the default with --strategy or --lock)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            if options["replay"]:
                self._replay(Job.of_replay_id(options["replay"]), options)
                return
            end_as_ctrl_c()
            campaign = Campaign(_jobs(options), options["lanes"] or os.cpu_count() or 1)
        except ValueError as error:
            raise subjects.usage(error) from error
        subjects.writable(options["output"])
        try:
            report = self._explore(campaign)
        except ServerError as error:
            raise subjects.usage(error) from error
        self._show(report, keep(report, options["output"] / "explore.json"), options)
        if report["stopped"]:
            raise SystemExit(130)
        if code := exit_code(report["results"], options["require"]):
            raise SystemExit(int(code))

    def _explore(self, campaign: Campaign) -> dict[str, Any]:
        columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
        with Progress(*columns, console=Console(stderr=True, emoji=False), transient=True) as progress:
            bar = progress.add_task("starting the servers", total=len(campaign.jobs))

            def tick(result: dict[str, Any]) -> None:
                progress.update(bar, advance=1, description=escape(result["strategy"]))
                cost = f"{result['schedules']:,} schedules, {result['seconds']:.0f} s"
                told = f"  {escape(result['strategy'])}: {so_far(result)} ({cost})"
                progress.console.print(told, highlight=False)

            return campaign.run(tick)

    def _show(self, report: dict[str, Any], files: list[str], options: dict[str, Any]) -> None:
        if options["json"]:
            tell(self, report, files)
            return
        results = report["results"]
        on = console(self.stdout, width=160)
        told = [*remarks(results), *not_kept(results, options["require"]), *stopped(results), *files]
        show(on, tables(results, on.width), told)

    def _replay(self, job: Job, options: dict[str, Any]) -> None:
        """Print the schedule and the word of its verdict."""
        subjects.subjects(
            {"lock": [job.strategy] if ":" in job.strategy else [], "strategy": [job.strategy]}, ()
        )
        [(_, answer)] = Campaign(
            [replace(job, gates=subjects.gates(options), one_machine=options["one_machine"])], 1
        ).replays()
        if options["json"]:
            self.stdout.write(json.dumps(answer, indent=2, ensure_ascii=False))
        else:
            if example := answer.get("counterexample"):
                width = shutil.get_terminal_size((140, 40)).columns
                self.stdout.write(diagram(example["steps"], example["opening"], width))
                for sentence in example["sentences"]:
                    self.stdout.write(sentence)
                if example["trace"]:
                    self.stdout.write(f"{example['trace']}\nRemedy: {MISTAKE}.")
            self.stdout.write(answer.get("cause", ""))
            self.stdout.write(answer["verdict"])
        if not answer["reproduced"]:
            raise SystemExit(int(Exit.DISAGREES))


def _hazards(text: str) -> tuple[str, ...]:
    """Parse a list of hazards. Raises ValueError for one that the explorer does not know."""
    known = tuple(map(str, HAZARD_OF.values()))
    names = tuple(name.strip() for name in text.split(","))
    if wrong := [name for name in names if name not in known]:
        raise ValueError(f"no hazard {wrong[0]!r} here. Known: {', '.join(known)}")
    return names


def _store(options: dict[str, Any]) -> str:
    """Return the store that was asked for, or the only one that all named strategies can use; "": each has its own."""
    named = [find(slug).stores for slug in subjects.wanted(options)]
    only = {stores for stores in named if "postgres" not in stores}
    return options["store"] or ("mariadb" if named and only == {("mariadb",)} == set(named) else "")


def _jobs(options: dict[str, Any]) -> list[Job]:
    """Return a job for each requested strategy, or for all if none was named. The control comes first."""
    shared = {
        name: options[name] for name in ("workers", "faults", "work", "slack", "workload", "one_machine")
    }
    budget = 300.0 if options["budget"] is None else options["budget"]
    store = _store(options)
    slugs = subjects.subjects(options, tuple(s for s in STRATEGIES if not store or store in find(s).stores))
    gates, named = subjects.gates(options), options["strategy"] or options["lock"]
    until = options["until"] or (EXHAUSTED if named else DECIDED)
    jobs = [
        Job(strategy=slug, budget=budget, until=until, gates=gates, store=store, **shared) for slug in slugs
    ]
    for job in jobs:
        _ = job.bounds  # raises ValueError before any server starts
    return jobs
