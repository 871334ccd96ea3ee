"""`manage.py bench PART`: measurements against peers and floors, in one run: locks, strategies, lock-tables."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand
from rich.console import Console

from loadtest.bench import locks, locks_table, output, sql_parts
from loadtest.machine import machine
from loadtest.report.console import console, show
from loadtest.servers import ServerError
from loadtest.subjects import usage


class Command(BaseCommand):
    help = "Measure locks, strategies and the explorer against their peers, in one run."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parts = parser.add_subparsers(dest="part", required=True, metavar="PART")
        about = "what a lock costs, alone and contended, against its peers, the floor and the physical limit"
        part = parts.add_parser("locks", help=about, description=about)
        part.add_argument(
            "--quick", action="store_true", help="at most 60 s, for a look; its figures are rough"
        )
        listed = "; ".join(f"{each}: {what}" for each, what in locks.PARTS.items())
        part.add_argument(
            "--part", action="append", dest="only", choices=locks.PARTS, help=f"repeatable. {listed}"
        )
        part.add_argument("--rounds", type=int, help="of the uncontended part (9)")
        part.add_argument("--output", type=Path, default=Path("report"), help="folder of bench.json (report)")
        part.add_argument("--json", action="store_true", help="print bench.json instead of the tables")
        sql_parts.add_parsers(parts)

    def handle(self, *args: Any, **options: Any) -> None:
        if options["part"] in sql_parts.PARTS:
            sql_parts.handle(options, self.stdout)
        else:
            self.locks(options)

    def locks(self, options: dict[str, Any]) -> None:
        if options["rounds"] is not None and options["rounds"] < 1:
            raise usage("--rounds: give 1 or more")
        plan = locks.QUICK if options["quick"] else locks.Plan()
        plan = locks.chosen(plan, options["rounds"], options["only"])
        try:
            with Console(stderr=True).status("starting servers") as status:
                measured = locks.run(plan, status.update)
        except ServerError as error:
            raise usage(error) from error
        file = options["output"] / "bench.json"
        whole = output.write("locks", measured, machine(measured["servers"]), file)
        if options["json"]:
            self.stdout.write(json.dumps(whole, indent=1, ensure_ascii=False))
        else:
            self.show(measured, file)
        if not all(row.get("counter_right", True) for row in measured["results"]):
            raise SystemExit(1)

    def show(self, measured: dict[str, Any], file: Path) -> None:
        tables = locks_table.tables(measured["results"], measured["goals"], measured["warning"])
        notes = (
            note for note in measured["notes"] if note != measured["warning"]
        )  # it stands below the goals
        show(console(self.stdout), tables, notes, file)
