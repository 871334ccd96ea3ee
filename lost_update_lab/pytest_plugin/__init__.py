"""pytest's fixture `race`: operations on trial inside a test suite. pytest finds this plugin by itself.

def test_voucher_is_redeemed_once(race):
    race.setup(one_voucher)
    race.worker("Ann", redeem, "XMAS", user=1)
    race.worker("Bob", redeem, "XMAS", user=2)
    race.invariant(lambda: redemptions() <= 1, "a voucher with one use was used twice")
    race.explore(crashes=1)
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from lost_update_lab.scenarios.race import Race

SERVERS, EMBEDDED = "lost_update_lab_servers", "embedded"
#: in the environment: the names of the addresses there that are those of servers which the plugin has started
STARTED = "LOST_UPDATE_LAB_STARTED"
RESULTS = pytest.StashKey[list[Any]]()
#: what other processes of pytest-xdist have reported: "markdown", and "json", a list of results
TOLD = pytest.StashKey[list[dict[str, str]]]()
#: scenarios that could not be explored
MISTAKES = pytest.StashKey[list[dict[str, str]]]()
#: the results and mistakes of all processes, as in JSON
EVERY = pytest.StashKey[list[dict[str, Any]]]()
#: of a test: its own part has failed
FAILED = pytest.StashKey[bool]()
#: what pytest shows of a test that failed: here that of all schedules, hundreds of times
CAPTURED = "Captured "
#: a test has called what it should have given to `race`
TOO_EARLY = (
    "{} is set from race.explore() on. Was a function called that `race` should call? Write race.setup(one_voucher), "
    "and race.worker('Ann', redeem, 'XMAS'). If the test itself needs a server, set {} = \"embedded\" for pytest."
)
LONGEST = 150  # characters of a page's name
#: the names of the modules of all tests
MODULES = pytest.StashKey[frozenset[str]]()
RECORDER = pytest.StashKey[Any]()
SCOPES = pytest.StashKey[Any]()
MUTATOR = pytest.StashKey[Any]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("lost-update-lab", "operations on trial (the fixture `race`)")
    group.addoption("--race-replay", metavar="ID", default="", help="play this schedule instead of exploring")
    group.addoption("--race-summary", metavar="FILE", default="", help="write the results there, as Markdown")
    group.addoption("--race-json", metavar="FILE", default="", help="write the results there, as JSON")
    told = "write an HTML page there for each smallest order, to step through"
    group.addoption("--race-page", metavar="DIR", default="", help=told)
    group.addoption(
        "--race-record", metavar="FILE", default="", help="write there what the tests send to their servers"
    )
    group.addoption("--race-mutation", metavar="JSON", default="", help="take this away (explore --mutate)")
    told = (
        "'embedded': PostgreSQL and Valkey are started before the settings are read, as DATABASE_URL and REDIS_URL; "
        "'mariadb': MariaDB and Valkey"
    )
    parser.addini(SERVERS, told, default="")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None, Any, Any]:
    """pytest-django reads the project's settings right after this."""
    if wanted := early_config.getini(SERVERS):
        from lost_update_lab.under_test.servers import DATABASE, EMBEDDED_MARIADB, REDIS, embedded

        if wanted not in (EMBEDDED, EMBEDDED_MARIADB):
            raise pytest.UsageError(f"{SERVERS} is {EMBEDDED!r} or {EMBEDDED_MARIADB!r}, and not {wanted!r}")
        for name, server in (
            (DATABASE, EMBEDDED_MARIADB if wanted == EMBEDDED_MARIADB else DATABASE),
            (REDIS, REDIS),
        ):
            if name not in os.environ or _is_the_controllers(name):
                os.environ[name] = embedded(server)
                os.environ[STARTED] = f"{os.environ.get(STARTED, '')} {name}"
    return (yield)


def _is_the_controllers(name: str) -> bool:
    """Has the process that started this one of pytest-xdist started that server? What one of them empties, another
    would be looking at."""
    return "PYTEST_XDIST_WORKER" in os.environ and name in os.environ.get(STARTED, "").split()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[RESULTS], config.stash[TOLD], config.stash[MISTAKES] = [], [], []
    if path := config.getoption("--race-record"):
        from lost_update_lab.gates.patch import Patches
        from lost_update_lab.suggest.recording import CommandRecorder
        from lost_update_lab.suggest.scopes import Scopes

        config.stash[RECORDER] = CommandRecorder(Path(path))
        config.stash[SCOPES] = Scopes(config.stash[RECORDER])
        config.stash[RECORDER].install(Patches())
    if told := config.getoption("--race-mutation"):
        from lost_update_lab.gates.patch import Patches
        from lost_update_lab.scenarios.mutator import Mutator
        from lost_update_lab.scenarios.result import Mutation
        from lost_update_lab.scenarios.unconstrained import Unconstrained

        mutation = Mutation(**json.loads(told))
        of_tables = not mutation.line
        mutator = Unconstrained(mutation.what) if of_tables else Mutator(mutation, applies=lambda: True)
        mutator.install(Patches())
        config.stash[MUTATOR] = mutator


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """What a race sends is no operation of the suite."""
    recorder = item.config.stash.get(RECORDER, None)
    if recorder and "race" not in getattr(item, "fixturenames", ()):
        recorder.begin(item.nodeid, _uses_django(item))
    try:
        return (yield)
    finally:
        if recorder:
            recorder.begin("")


@pytest.hookimpl(tryfirst=True)  # before some are deselected: their files have been imported, too
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[MODULES] = frozenset(map(_module_of, items))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Its schedules need not look at the other tests' files."""
    if modules := sys.modules.get("lost_update_lab.runs.modules"):  # a test explores something
        modules.Tests.collected = item.config.stash.get(MODULES, frozenset())
        modules.Tests.running = _module_of(item)


def _module_of(item: pytest.Item) -> str:
    return str(getattr(getattr(item, "module", None), "__name__", ""))


@pytest.fixture
def race(request: pytest.FixtureRequest) -> Iterator[Race]:
    """A scenario to be written down; `race.explore()` fails the test with the smallest order that breaks it."""
    __tracebackhide__ = True
    from lost_update_lab.scenarios.explore import REPLAY
    from lost_update_lab.scenarios.race import Race
    from lost_update_lab.under_test.scenario import Mistake

    again = _again(request.node)
    try:
        terminal = partial(_terminal, request.config.pluginmanager.getplugin("capturemanager"))
        made = Race(request.node.nodeid, again=again, terminal=terminal, **_framework(request))
    except Mistake as mistake:
        pytest.fail(str(mistake), pytrace=False)
    if wanted := request.config.getoption("--race-replay"):
        os.environ[REPLAY] = wanted
    try:
        yield made
    finally:
        os.environ.pop(REPLAY, None)
        request.config.stash[RESULTS] += made.results
        _write_pages(request.node, made.results)
    if (told := made.forgotten()) and not request.node.stash.get(FAILED, False):
        pytest.fail(told, pytrace=False)


def _again(item: pytest.Item) -> str:
    """The command that plays a schedule of this test again, where the user stands; `{id}` stands for the schedule."""
    path = os.path.relpath(item.path, item.config.invocation_params.dir)
    name = "::".join([path, *item.nodeid.split("::")[1:]])
    return "lost-update-lab replay '{}/{{id}}'".format(
        name.replace("'", "'\\''").replace("{", "{{").replace("}", "}}")
    )


def _shown(results: Iterable[Any]) -> int:
    """How many of them have a page."""
    return sum(result.schedule is not None for result in results)


def _page_of(item: pytest.Item, number: int) -> Path | None:
    """The file for the page of one of its results. None: nobody wants one."""
    if not (folder := item.config.getoption("--race-page")):
        return None
    name = re.sub(r"[^\w.-]+", "-", item.nodeid).strip("-")[:LONGEST]
    return Path(folder) / f"{name}{f'-{number}' if number > 1 else ''}.html"


def _write_pages(item: pytest.Item, results: Sequence[Any]) -> None:
    from lost_update_lab.scenarios.reports import page

    for place, result in enumerate(results, 1):
        if result.schedule and (path := _page_of(item, _shown(results[:place]))):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(page([result]), encoding="utf-8")


@contextmanager
def _terminal(capturing: Any) -> Iterator[Any]:
    """Show progress on the terminal that pytest hides from the tests."""
    from lost_update_lab.scenarios.progress import shown

    def uncaptured() -> Any:
        return capturing.global_and_fixture_disabled() if capturing else nullcontext()

    with uncaptured():
        stream = sys.stderr
    with shown(stream) as told:

        def tell(progress: Any) -> None:
            with uncaptured():
                if told:
                    told(progress)

        yield tell if told else None


def _framework(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The framework that the project uses."""
    if not _uses_django(request.node):
        return {}
    from lost_update_lab.under_test.of_django import project_of

    return project_of(True)


def _uses_django(item: pytest.Item) -> bool:
    fixtures = {"db", "transactional_db", "django_db_reset_sequences", "live_server"}
    used = fixtures & set(getattr(item, "fixturenames", ())) or item.get_closest_marker("django_db")
    return "django" in sys.modules and (bool(used) or _is_of_django(getattr(item, "cls", None)))


def _is_of_django(cls: type | None) -> bool:
    """Is it a TestCase of Django's? Such a class asks for its database without any fixture."""
    module = sys.modules.get("django.test.testcases")
    return cls is not None and module is not None and issubclass(cls, module.TransactionTestCase)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: pytest.FixtureRequest) -> Generator[None, Any, Any]:
    """What a fixture with a wider scope sends does not belong to the one test that happens to be the first."""
    scopes = request.config.stash.get(SCOPES, None)
    with scopes.recorded(fixturedef, request.node) if scopes else nullcontext():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Show the smallest order instead of a traceback through the explorer."""
    report = yield
    error = call.excinfo.value if call.excinfo else None
    item.stash[FAILED] = item.stash.get(FAILED, False) or error is not None
    if error is not None and "race" in getattr(item, "fixturenames", ()):
        from lost_update_lab.scenarios.race import NotKept
        from lost_update_lab.scenarios.result import NOT_EXPLORED
        from lost_update_lab.under_test.scenario import Mistake

        if isinstance(error, NotKept | Mistake):
            report.longrepr = str(error)
            # the command that replays says itself where the page is
            if isinstance(error, NotKept) and not item.config.getoption("--race-replay"):
                path = _page_of(item, _shown(vars(item)["funcargs"]["race"].results))
                report.longrepr += f"\n  Page: {path}" if path and error.result.schedule else ""
                _leave_out_captured(report)
        if isinstance(error, KeyError) and error.args in (("DATABASE_URL",), ("REDIS_URL",)):
            report.sections.append(("lost-update-lab", TOO_EARLY.format(error.args[0], SERVERS)))
        if not isinstance(error, NotKept):
            told = {"name": item.nodeid, "verdict": NOT_EXPLORED, "sentence": str(error)}
            item.config.stash[MISTAKES].append(told)
    return report


def _leave_out_captured(report: pytest.TestReport) -> None:
    shown = [section for section in report.sections if not section[0].startswith(CAPTURED)]
    if len(shown) < len(report.sections):
        report.sections[:] = shown
        report.longrepr = (
            f"{report.longrepr}\n  What the schedules logged and printed is shown by the replay."
        )


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With pytest-xdist, each process passes its results to the one that writes the files."""
    config = session.config
    mutator = config.stash.get(MUTATOR, None)
    if mutator and not mutator.made and session.exitstatus == pytest.ExitCode.OK:
        from lost_update_lab.scenarios.result import NOT_MADE

        session.exitstatus = NOT_MADE
    if recorder := config.stash.get(RECORDER, None):
        recorder.write()
    results, others = config.stash[RESULTS], config.stash[TOLD]
    every = [*(result.to_json() for result in results), *config.stash[MISTAKES]]
    told = getattr(config, "workeroutput", None)
    if told is not None:
        from lost_update_lab.scenarios.reports import markdown

        text = markdown(results) if results else ""
        told["lost_update_lab"] = {"markdown": text, "json": json.dumps(every, default=str)}
        return
    every = [*(each for one in others for each in json.loads(one["json"])), *every]
    config.stash[EVERY] = every
    if path := config.getoption("--race-json"):
        Path(path).write_text(json.dumps({"results": every}, indent=2, default=str), encoding="utf-8")
    if path := config.getoption("--race-summary"):
        from lost_update_lab.scenarios.reports import write

        write(path, results, [one["markdown"] for one in others if one["markdown"]])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    if told := getattr(node, "workeroutput", {}).get("lost_update_lab"):
        node.config.stash[TOLD].append(told)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """A test that passes prints nothing; what its result says besides `kept` stands at the end."""
    notes = dict[str, list[str]]()
    for each in config.stash.get(EVERY, []):
        if each.get("kept"):
            for note in (*each["notes"], *_survivors(each["mutations"])):
                notes.setdefault(note, []).append(each["name"])
    if not notes:
        return
    from lost_update_lab.scenarios.result import WIDTH

    terminalreporter.section("races that were kept: notes")
    for note, names in notes.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        terminalreporter.line(f"{', '.join(names[:3])}{more}")
        terminalreporter.line(fill(note, WIDTH, initial_indent="  ", subsequent_indent="  "))


def _survivors(tried: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What the mutations came to."""
    if tried:
        from lost_update_lab.scenarios.result import NOT_TRIED, SURVIVES, Mutation

        found = [str(Mutation(**each["mutation"])) for each in tried if each["word"] == SURVIVES]
        told = f"{len(found)} survive: {'; '.join(found)}" if found else "none survives"
        left = [each for each in tried if each["word"] == NOT_TRIED]
        if len(left) < len(tried):
            yield f"mutations: {len(tried) - len(left)} tried, {told}"
        yield from (f"mutations: {each['told']} ({Mutation(**each['mutation'])})" for each in left)
