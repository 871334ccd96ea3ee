"""`manage.py samples`: write the sample files for the admin's batch import."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ledger.imports.samples import SEED, SELLERS, sample_files


class Command(BaseCommand):
    help = "Write one CSV file for each sample seller. The same seed gives the same bytes."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--output", type=Path, default=Path("samples"), metavar="DIR")
        parser.add_argument("--lines", type=int, default=150, help="lines in each file")
        parser.add_argument("--accounts", type=int, default=12)
        parser.add_argument("--sellers", nargs="+", default=list(SELLERS), metavar="NAME")
        parser.add_argument("--seed", type=int, default=SEED)

    def handle(self, *args: Any, **options: Any) -> None:
        if not (1 <= options["lines"] <= 100_000 and 1 <= options["accounts"] <= 9999):
            raise CommandError("--lines must be 1 to 100,000, --accounts 1 to 9,999", returncode=2)
        folder: Path = options["output"]
        folder.mkdir(parents=True, exist_ok=True)
        files = sample_files(
            options["lines"], options["accounts"], tuple(options["sellers"]), options["seed"]
        )
        for name, content in files.items():
            (folder / name).write_bytes(content)
            self.stdout.write(f"{folder / name}: {len(content.splitlines()) - 1} lines")
