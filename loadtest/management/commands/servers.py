"""`python manage.py servers up|down|status`: the embedded servers of this checkout."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from loadtest.servers import ServerError, embedded
from loadtest.servers.keeper import UNAVAILABLE

EXTRA = ("mariadb", "zookeeper")


class Command(BaseCommand):
    help = "Start, end or show the embedded servers (PostgreSQL and Valkey; MariaDB and ZooKeeper on demand)."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        up = actions.add_parser(
            "up", help="start them, migrate, and return; they keep running. May be called twice"
        )
        for name in EXTRA:
            up.add_argument(f"--{name}", action="store_true", help=f"also {name} (needs Debian's package)")
        up.add_argument("--all", action="store_true", help="all that are installed")
        down = actions.add_parser("down", help="end them; if a run uses them, when it ends (exit code 1)")
        down.add_argument("--force", action="store_true", help="end them even while a run uses them")
        status = actions.add_parser("status", help="show where they are; exit code 1 if none runs")
        status.add_argument("--json", action="store_true")

    def handle(self, *args: Any, action: str, **options: Any) -> None:
        try:
            getattr(self, f"_{action}")(options)
        except ServerError as error:
            raise CommandError(str(error)) from error

    def _up(self, options: dict[str, Any]) -> None:
        wanted = [name for name in EXTRA if options[name]]
        for name in EXTRA if options["all"] else ():
            if reason := UNAVAILABLE[name]():
                self.stdout.write(f"{name}: not started, {reason}")
            elif name not in wanted:
                wanted.append(name)
        addresses = embedded.up(*wanted)
        embedded.migrate()
        for name, address in addresses.items():
            self.stdout.write(f"{name}={address}")

    def _down(self, options: dict[str, Any]) -> None:
        try:
            embedded.down(force=options["force"])
        except embedded.StillUsed as noted:  # asked for, and not done yet: no error, but no end either
            self.stdout.write(str(noted))
            raise SystemExit(1) from None
        self.stdout.write("No embedded server runs.")

    def _status(self, options: dict[str, Any]) -> None:
        status = embedded.status()
        if options["json"]:
            self.stdout.write(json.dumps(status, indent=1))
        elif status["running"]:
            lines = [f"{name}={address}" for name, address in status["addresses"].items()]
            lines += [
                f"{name}: process {pid}, log {status['logs'][name]}" for name, pid in status["pids"].items()
            ]
            lines += [
                "They stay until `servers down`." if status["stays"] else "They end with their last user."
            ]
            self.stdout.write("\n".join(lines))
        else:
            self.stdout.write("No embedded server runs. Start them: python manage.py servers up")
        if not status["running"]:
            raise SystemExit(1)
