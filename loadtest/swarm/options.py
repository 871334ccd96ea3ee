"""The swarm's own command-line arguments, which are also fields of Locust's web page.

An argument becomes a drop-down if it has `choices` on the parser itself (not in a group).
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from ledger.card import CARD
from loadtest.commandline.arguments import named_values
from loadtest.commandline.durations import duration, span
from loadtest.swarm.bank import Bank, BankError
from loadtest.workloads import WORKLOADS, Workload
from loadtest.workloads import find as find_workload

DEFAULT_HOST = "http://127.0.0.1:8000"
#: accounts of the warm-up book: so many that users seldom meet there
WARM_UP_ACCOUNTS = 1000
#: the master's report at the end, in the folder of `--history`
REPORT = "swarm.json"


def add_arguments(parser: Any) -> None:
    """Declare the arguments. Those with `include_in_web_ui=False` are for programs, not for people."""
    parser.set_defaults(num_users=20, spawn_rate=20)  # one user alone loses nothing
    # Locust's page starts load without a login, and would by default listen on every interface
    parser.set_defaults(web_host="127.0.0.1")
    strategies = offered(sys.argv[1:])
    default = "naive-lock" if "naive-lock" in strategies else strategies[0]
    parser.add_argument("--strategy", choices=strategies, default=default, help="what protects the balance")
    parser.add_argument("--workload", choices=tuple(WORKLOADS), default="deposits", help="what the users do")
    parser.add_argument(
        "--workload-options",
        default="",
        help="options of the workload, such as reads=0.95 (docs/reference.md lists them)",
    )
    parser.add_argument(
        "--contention", choices=("hot", "spread"), default="hot", help="hot: one account. spread: many"
    )
    parser.add_argument("--accounts", type=int, default=100, help="how many accounts when spread")
    parser.add_argument(
        "--start",
        choices=("together", "ramp"),
        default="together",
        help="together: users wait for each other, then all start at once",
    )
    parser.add_argument(
        "--think", default="0-5ms", help="how long the business works between read and write, such as 0-5ms"
    )
    parser.add_argument(
        "--poll", default="", help="how often a waiting lock tries again (empty: as published)"
    )
    parser.add_argument("--lease", default="", help="a lock's lease (empty: as published)")
    parser.add_argument("--iterations", type=int, default=0, help="operations of each user (0: no limit)")
    for name, kind, default_value in (
        ("--book", str, ""),  # use this open book instead of a fresh one, and …
        ("--warm-up-book", str, ""),  # … this one before the start
        ("--history", str, ""),  # folder of the history
        ("--seconds", float, 0.0),  # like --run-time, but may be a fraction
        ("--at-least", int, 1),  # operations of each user, even when the time is over
        ("--look", float, 0.0),  # read the balance this many seconds after the start
        ("--deadline", float, 30.0),  # seconds to wait for an answer
    ):
        parser.add_argument(
            name, type=kind, default=default_value, include_in_web_ui=False, help=argparse.SUPPRESS
        )


def offered(argv: list[str]) -> tuple[str, ...]:
    """Return the strategies of the ledger at `--host`, or the card's six if it does not answer."""
    known = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    known.add_argument("-H", "--host", default=os.environ.get("LOCUST_HOST", DEFAULT_HOST))
    known.add_argument("--worker", action="store_true")
    known.add_argument("--book", default="")
    given, _ = known.parse_known_args(argv)
    if given.worker or given.book:  # a worker gets it from its master; an open book has its strategy
        return CARD
    try:
        return tuple(each["strategy"] for each in Bank(given.host, timeout=2).strategies()) or CARD
    except BankError:
        return CARD


def workload_of(options: Any) -> Workload:
    """Return the workload that was asked for. Raises ValueError."""
    accounts = 1 if options.contention == "hot" else int(options.accounts)
    return find_workload(options.workload, accounts, **named_values(options.workload_options))


def settings_of(options: Any) -> dict[str, Any]:
    """Return the settings of the book. Raises ValueError, which says how to write a duration."""
    settings: dict[str, Any] = {"think": list(span(options.think))}
    if options.poll:
        settings["poll"] = duration(options.poll)
    if options.lease:
        settings["lease"] = duration(options.lease)
    return settings
