"""`make bench`: the locks, then the strategies on servers that are started for it, unless some run already.

Arguments go to both (`--quick`, `--output DIR`). Ctrl-C, SIGTERM and a failure end the servers too.
"""

from __future__ import annotations

import os
import sys

from loadtest import program
from loadtest.servers.embedded import migrate, using

PARTS = ("locks", "strategies")


def main(arguments: list[str]) -> int:
    """Returns the exit code: the worse one of both."""
    with using():
        migrate()
        return max(measure(part, arguments) for part in PARTS)


def measure(part: str, arguments: list[str]) -> int:
    # only now: the settings read the addresses of the servers when they are imported
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ledger.settings")
    import django

    django.setup()
    from django.core.management import CommandError, call_command

    try:
        call_command("bench", part, *arguments)
    except CommandError as error:
        print(error, file=sys.stderr)
        return error.returncode
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


if __name__ == "__main__":
    sys.exit(program.run(lambda: main(sys.argv[1:])))
