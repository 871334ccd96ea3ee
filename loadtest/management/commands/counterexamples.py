"""`python manage.py counterexamples [report/explore.json …]`: merge runs into the page, or execute it."""

import json
import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ledger.strategies import STRATEGIES
from loadtest.commandline.arguments import whole_number
from loadtest.commandline.subjects import there
from loadtest.explorer.campaign import Campaign
from loadtest.report.pages import counterexamples as schedules
from loadtest.report.pages import measured


class Command(BaseCommand):
    help = (
        "Merge results of `manage.py explore` into docs/counterexamples.md, the smallest schedule that breaks each "
        "strategy. Without a file, rewrite the page for the current strategies. With --check, run its schedules again."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "files",
            type=Path,
            nargs="*",
            help="explore.json of `manage.py explore`; later files override earlier ones",
        )
        parser.add_argument(
            "--check",
            action="store_true",
            help="write nothing; run each schedule of the page on servers of its own; exit code 1 if the page does not "
            "fit the code, or a schedule has another verdict",
        )
        parser.add_argument(
            "--shortest",
            type=whole_number(1000),
            metavar="N",
            help="with --check: only the N schedules with the fewest steps",
        )
        parser.add_argument(
            "--lanes", type=whole_number(64), help="with --check: how many schedules at once (all cores)"
        )

    def handle(self, *args: Any, files: list[Path], check: bool, **options: Any) -> None:
        page, runs = schedules.PATH.read_text(encoding="utf-8"), measured.load(schedules.DATA)
        if not check:
            there(files, "explore")
            for each in files:
                runs = schedules.merged(runs, json.loads(each.read_text(encoding="utf-8")))
            runs = measured.kept_only(runs, STRATEGIES)
            page = measured.placed(page, schedules.BEGIN, schedules.END, schedules.section(runs))
            measured.save(schedules.DATA, runs)
            schedules.PATH.write_text(page, encoding="utf-8")
        told = schedules.complaints(page, runs)
        if check and not told:
            told = self._again(runs, options)
        if told:
            raise CommandError(f"{schedules.PATH}:\n" + "\n".join(told))
        self.stdout.write(f"{schedules.PATH}: {'fits' if check else 'written'}")

    def _again(self, runs: measured.Runs, options: dict[str, Any]) -> list[str]:
        """Return the schedules that were not reproduced."""
        chosen = schedules.shortest(schedules.shown(runs), options["shortest"])
        lanes = options["lanes"] or os.cpu_count() or 1
        told = []
        for shown, why in schedules.replayed(chosen, lambda jobs: Campaign(jobs, lanes).replays()):
            self.stdout.write(f"  {shown.id}: {why or shown.word}")
            if why:
                told.append(f"{shown.id} {why}")
        return told
