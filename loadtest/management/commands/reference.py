"""`python manage.py reference [--check]`: write docs/reference.md, or check whether it is stale."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from loadtest.report.pages import reference


class Command(BaseCommand):
    help = "Write docs/reference.md from the registries of locks and strategies."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if it is stale")

    def handle(self, *args: Any, check: bool, **options: Any) -> None:
        page, path = reference.page(), reference.PATH
        fresh = path.exists() and path.read_text(encoding="utf-8") == page
        if check and not fresh:
            raise CommandError(f"{path} is stale: run `python manage.py reference`")
        if not fresh:
            path.write_text(page, encoding="utf-8")
        self.stdout.write(f"{path}: {'fresh' if fresh else 'written'}")
