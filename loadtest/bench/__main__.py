"""`make bench`: the locks, then the strategies, on servers of its own.

Nothing else posts to these servers. The hundreds of thousands of entries are deleted with them instead of staying in a
ledger for good. `manage.py bench PART` measures on the running servers. Arguments go to both parts (`--quick`,
`--output DIR`), or to the part that is named first. Ctrl-C, SIGTERM and a failure end the servers too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from loadtest.bench.locks.peer_python import peers_folder
from loadtest.commandline import program
from loadtest.servers.embedded import migrate, using
from loadtest.servers.private_lab import private_lab

PARTS = ["locks", "strategies"]
ALONE = [["locks"], ["strategies"], ["explorer"], ["lock-tables"], ["waiting"], ["scale"]]


def main(arguments: list[str]) -> int:
    """Measure, and return the gravest exit code of the parts."""
    parts, rest = (arguments[:1], arguments[1:]) if arguments[:1] in ALONE else (PARTS, arguments)
    os.environ.setdefault("LAB_PEERS", str(peers_folder()))  # installed once, not for each run
    with private_lab("bench"), using():
        migrate()
        return gravest([measure(part, rest) for part in parts])


def gravest(codes: Sequence[int]) -> int:
    """Return the gravest code: lost money (1), then a part that could not run (2), then an inconclusive one (3)."""
    return min((code for code in codes if code), default=0)


def measure(part: str, arguments: list[str]) -> int:
    # only now: on import, the settings read the addresses of the servers
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
