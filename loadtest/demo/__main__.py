"""`make demo`: servers, the six strategies, the table, the report; then everything ends.

Ctrl-C, SIGTERM and a failure end the servers too; after SIGKILL their keeper and the reaper do.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from loadtest.commandline import program
from loadtest.commandline.durations import length
from loadtest.demo import SERVE_PORT
from loadtest.servers import ServerError
from loadtest.servers.embedded import migrate, using


def main() -> int:
    """Returns the exit code: 0 when the evidence agrees with the claims."""
    asked = seconds()
    print("Starting PostgreSQL and Valkey …", flush=True)
    with using():
        migrate()
        return measure(asked)


def measure(seconds: float | None) -> int:
    """Compare, report, and say what to do next."""
    # only now: the settings read the addresses of the servers when they are imported
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ledger.settings")
    import django

    django.setup()
    from django.core.management import CommandError, call_command

    from loadtest.demo.login import demo_login

    code, output = 0, Path(os.environ.get("DEMO_OUTPUT", "report"))
    try:
        call_command("compare", preset="demo", seconds=seconds, output=output)
    except CommandError as error:
        print(error, file=sys.stderr)
        return error.returncode
    except SystemExit as ended:
        code = int(ended.code or 0)
    name, password = demo_login()
    print(
        f"\nOpen {output / 'index.html'}. Then: make serve\n"
        f"  http://127.0.0.1:{SERVE_PORT}/admin/   login {name}, password {password}"
    )
    return code


def seconds() -> float | None:
    """How long each swarm runs: DEMO_SECONDS, or what the preset says."""
    text = os.environ.get("DEMO_SECONDS", "")
    try:
        return length(text) if text else None
    except ValueError as error:
        raise ServerError(f"DEMO_SECONDS: {error}") from error


if __name__ == "__main__":
    sys.exit(program.run(main))
