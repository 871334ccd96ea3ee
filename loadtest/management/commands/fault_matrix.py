"""`python manage.py fault_matrix [report/faults.json …]`: merge runs into the table in docs/faults.md."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from loadtest.commandline.subjects import there
from loadtest.report.pages import fault_matrix as table
from loadtest.report.pages import measured


class Command(BaseCommand):
    help = (
        "Merge results of `manage.py faults` into the table of claims × evidence in docs/faults.md. Without a file, "
        "rewrite the table for the current strategies and hazards. With --check, report where it does not fit the code."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "files",
            type=Path,
            nargs="*",
            help="faults.json of `manage.py faults`; later files override earlier ones",
        )
        parser.add_argument(
            "--check", action="store_true", help="write nothing; exit code 1 if it does not fit"
        )

    def handle(self, *args: Any, files: list[Path], check: bool, **options: Any) -> None:
        page, runs = table.PATH.read_text(encoding="utf-8"), measured.load(table.DATA)
        if not check:
            there(files, "faults")
            for each in files:
                runs = table.merged(runs, json.loads(each.read_text(encoding="utf-8")))
            runs = measured.kept_only(runs, table.wanted())
            page = measured.placed(page, table.BEGIN, table.END, table.section(runs))
            measured.save(table.DATA, runs)
            table.PATH.write_text(page, encoding="utf-8")
        if told := table.complaints(page, runs):
            raise CommandError(f"{table.PATH}:\n" + "\n".join(told))
        self.stdout.write(f"{table.PATH}: {'fits' if check else 'written'}")
