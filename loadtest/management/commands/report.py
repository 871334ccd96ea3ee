"""`manage.py report`: index.html from whatever evidence there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from loadtest.commandline.subjects import add_output
from loadtest.report.page import NoEvidence, write


class Command(BaseCommand):
    help = "Write DIR/index.html, one self-contained page, from the evidence files in DIR."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        add_output(parser)

    def handle(self, *args: Any, output: Path, **options: Any) -> None:
        try:
            self.stdout.write(f"wrote {write(output)}")
        except NoEvidence as error:
            raise CommandError(str(error), returncode=2) from error
