"""`python manage.py fault_matrix report/faults.json`: write the table in docs/faults.md; `--check`: does it fit?"""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from loadtest.commandline.subjects import there
from loadtest.report.pages import fault_matrix as table


class Command(BaseCommand):
    help = "Write the table of claims × evidence in docs/faults.md, or say where it does not fit the code."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "files", type=Path, nargs="*", help="what `manage.py faults` has written; the later file counts"
        )
        parser.add_argument(
            "--check", action="store_true", help="write nothing; exit code 1 if it does not fit"
        )

    def handle(self, *args: Any, files: list[Path], check: bool, **options: Any) -> None:
        page = table.PATH.read_text(encoding="utf-8")
        if not check:
            there(files, "faults")
            before, _, rest = page.partition(table.BEGIN)
            _, _, after = rest.partition(table.END)
            made = table.section([json.loads(each.read_text(encoding="utf-8")) for each in files])
            page = f"{before}{table.BEGIN}\n{made}{table.END}{after}"
            table.PATH.write_text(page, encoding="utf-8")
        if told := table.complaints(page):
            raise CommandError(f"{table.PATH}:\n" + "\n".join(told))
        self.stdout.write(f"{table.PATH}: {'fits' if check else 'written'}")
