"""pgbench as the limit: the same statement as `atomic-update`, from a C client, against the same tables."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from django.db import connection

from ledger.models import Book
from ledger.strategies.atomic_update import ADD_STATEMENT, THIS_ONE
from loadtest.bench.children import ChildFailed
from loadtest.bench.strategies.callers import WARM_UP_SECONDS, Rate, held
from lost_update_lab.embedded.postgres import binaries

#: the parameters of the statement, as SQL that pgbench's sessions evaluate themselves
FILLED = {
    "entry": "gen_random_uuid()",
    "amount": "1",
    "key": "gen_random_uuid()::text",
    "fingerprint": "repeat('f', 32)",
    "worker": "'pgbench'",
    "place": "0",
}
PROCESSED = re.compile(r"^number of transactions actually processed: (\d+)", re.MULTILINE)
RATE = re.compile(r"^tps = ([0-9.]+)", re.MULTILINE)
FIRST = re.compile(r"^progress: ([0-9.]+) s, ([0-9.]+) tps", re.MULTILINE)
LEAST = 0.5  # the shortest time for a rate, in seconds


class PgbenchFailed(ChildFailed):
    """pgbench failed. The message is its last output."""


def script(book: Book, accounts: int) -> str:
    """Return a transaction: one statement on one of `accounts` accounts, with the entry's id drawn once."""
    filled: Mapping[str, str] = {
        **FILLED,
        "book": f"'{book.pk}'::uuid",
        "number": "'A' || :account::text",
        "entry": "(SELECT id FROM drawn)",
    }
    statement = ADD_STATEMENT.format(which=THIS_ONE, told="") % filled
    with_id = statement.replace("WITH written", "WITH drawn AS (SELECT gen_random_uuid() AS id), written", 1)
    return f"\\set account random(0, {accounts - 1})\n" + " ".join(with_id.split()) + ";\n"


def rate(book: Book, *, accounts: int, seconds: float, clients: int, protocol: str = "prepared") -> Rate:
    """Let `clients` sessions post to `book` for this many seconds, after a second of warm-up. Raises PgbenchFailed."""
    given, length = connection.get_connection_params(), WARM_UP_SECONDS + max(1, round(seconds))
    # pragma: allowlist nextline secret
    variables = {"PGHOST": "host", "PGPORT": "port", "PGUSER": "user", "PGPASSWORD": "password"}
    environment = {name: str(given[key]) for name, key in variables.items() if given.get(key)}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "posting.sql"
        file.write_text(script(book, accounts))
        options = ["-n", "-f", str(file), "-c", str(clients), "-j", str(min(clients, os.cpu_count() or 1))]
        options += ["-T", str(length), "-P", str(WARM_UP_SECONDS), "-M", protocol, str(given["dbname"])]
        before = _of_children()
        done = subprocess.run(
            [binaries() / "pgbench", *options],
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    try:
        processed, per_s = read(done.stdout, done.stderr)
        done.check_returncode()
    except (LookupError, subprocess.CalledProcessError):
        raise PgbenchFailed(f"pgbench: {(done.stderr or done.stdout).strip()[-300:]}") from None
    return Rate(per_s, held(book) == processed, 1e6 * (_of_children() - before) / max(1, processed))


def read(told: str, progress: str) -> tuple[int, float]:
    """Return pgbench's number of transactions, and their rate after its first progress report.

    If that report came so late that hardly any time is left, the rate is that of the whole run. Raises LookupError if
    the output has no figures, or if there was no transaction.
    """
    found = [words.search(text) for words, text in ((PROCESSED, told), (RATE, told), (FIRST, progress))]
    if None in found:
        raise LookupError("not the output of a finished pgbench")
    processed, whole, first_seconds, first = (float(n) for match in found if match for n in match.groups())
    if not processed:
        raise LookupError("not one transaction")
    rest = processed / whole - first_seconds
    return int(processed), (processed - first * first_seconds) / rest if rest >= LEAST else whole


def _of_children() -> float:
    """Return the CPU seconds of the ended child processes."""
    times = os.times()
    return times.children_user + times.children_system
