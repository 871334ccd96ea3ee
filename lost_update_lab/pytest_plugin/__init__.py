"""pytest's fixture `race`: operations on trial inside of a test suite. pytest finds this plugin by itself.

def test_voucher_is_redeemed_once(race):
    race.setup(one_voucher)
    race.worker("Ann", redeem, "XMAS", user=1)
    race.worker("Bob", redeem, "XMAS", user=2)
    race.invariant(lambda: redemptions() <= 1, "a voucher with one use was used twice")
    race.explore(crashes=1)
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lost_update_lab.scenarios.race import Race

SERVERS = "lost_update_lab_servers"
RESULTS = pytest.StashKey[list[Any]]()
#: what other processes of pytest-xdist have told
TOLD = pytest.StashKey[list[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lost-update-lab", "operations on trial (the fixture `race`)")
    group.addoption("--race-replay", metavar="ID", default="", help="play this schedule instead of exploring")
    group.addoption("--race-summary", metavar="FILE", default="", help="write the results there, as Markdown")
    told = "'embedded': PostgreSQL and Valkey are started before the settings are read, as DATABASE_URL and REDIS_URL"
    parser.addini(SERVERS, told, default="")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, Any, Any]:
    """pytest-django reads the project's settings right after this."""
    if early_config.getini(SERVERS) == "embedded":
        from lost_update_lab.scenarios.servers import DATABASE, REDIS, embedded

        for name in (DATABASE, REDIS):
            os.environ.setdefault(name, embedded(name))
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    config.stash[RESULTS], config.stash[TOLD] = [], []


@pytest.fixture
def race(request: pytest.FixtureRequest) -> Iterator[Race]:
    """A scenario to be written down; `race.explore()` fails the test with the smallest order that breaks it."""
    __tracebackhide__ = True
    from lost_update_lab.scenarios.explore import REPLAY
    from lost_update_lab.scenarios.race import Race
    from lost_update_lab.scenarios.scenario import Mistake

    again = f"lost-update-lab replay '{request.node.nodeid}/{{id}}'"
    try:
        made = Race(request.node.nodeid, again=again, **_framework(request))
    except Mistake as mistake:
        pytest.fail(str(mistake), pytrace=False)
    if wanted := request.config.getoption("--race-replay"):
        os.environ[REPLAY] = wanted
    try:
        yield made
    finally:
        os.environ.pop(REPLAY, None)
        request.config.stash[RESULTS] += made.results


def _framework(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the project is written with."""
    marker = request.node.get_closest_marker("django_db")
    fixtures = {"db", "transactional_db", "django_db_reset_sequences", "live_server"} & set(
        request.fixturenames
    )
    if "django" not in sys.modules or not (marker or fixtures):
        return {}
    from lost_update_lab.pytest_plugin import django_project

    return django_project.bound()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """The smallest order instead of a traceback through the explorer."""
    report = yield
    if call.excinfo and type(call.excinfo.value).__name__ in ("NotKept", "Mistake"):
        from lost_update_lab.scenarios.race import NotKept
        from lost_update_lab.scenarios.scenario import Mistake

        if isinstance(call.excinfo.value, NotKept | Mistake):
            report.longrepr = str(call.excinfo.value)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With pytest-xdist each process tells its own results to the one that writes the summary."""
    results = session.config.stash[RESULTS]
    told = getattr(session.config, "workeroutput", None)
    if told is not None:
        from lost_update_lab.scenarios.reports import markdown

        told["lost_update_lab"] = markdown(results) if results else ""
    elif path := session.config.getoption("--race-summary"):
        from lost_update_lab.scenarios.reports import write

        others: list[str] = session.config.stash[TOLD]
        write(path, results, others)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    if text := getattr(node, "workeroutput", {}).get("lost_update_lab"):
        node.config.stash[TOLD].append(text)
