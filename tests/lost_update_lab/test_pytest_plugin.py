"""The fixture `race`, in this very test suite. The examples use it in projects of their own (test_package.py)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import lost_update_lab
from lost_update_lab.command.main import main
from lost_update_lab.scenarios.explore import REPLAY
from lost_update_lab.scenarios.race import NotKept, Race
from lost_update_lab.scenarios.reports import markdown, write
from lost_update_lab.under_test.scenario import Mistake
from tests.lost_update_lab.scenarios.shop import one_voucher, redeem, redeem_locked

ROOT = Path(lost_update_lab.__file__).parents[1]


CALLED = """
import os
def one_voucher():
    return os.environ["DATABASE_URL"]

def test_called(race):
    race.setup(one_voucher())
"""


def test_a_setup_that_is_called_before_there_is_a_server(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    pytester.makepyfile(CALLED)
    done = pytester.runpytest("-p", "lost_update_lab.pytest_plugin", "-p", "no:django")
    done.stdout.fnmatch_lines(["*DATABASE_URL is set from race.explore() on*Write race.setup(one_voucher)*"])


@pytest.fixture
def servers(explorer_urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    for name, value in zip(("DATABASE_URL", "REDIS_URL"), explorer_urls, strict=True):
        monkeypatch.setenv(name, value)


def two(race: Race, operation: object) -> None:
    race.setup(one_voucher)
    race.worker("Ann", operation, "XMAS", customer=1)  # type: ignore[arg-type]
    race.worker("Bob", operation, "XMAS", customer=2)  # type: ignore[arg-type]


@pytest.mark.deep
def test_a_race_fails_with_the_smallest_order_and_replays_it(
    servers: None, race: Race, tmp_path: Path
) -> None:
    two(race, redeem)
    with pytest.raises(NotKept, match="the outcome is that of no serial order") as broken:
        race.explore(disposable=True)
    result = broken.value.result
    assert result.again == f"lost-update-lab replay '{race.name}/{result.id}'"
    with pytest.raises(NotKept) as again:
        race.replay(result.id, disposable=True)
    assert again.value.result.schedule
    assert result.schedule
    assert [move.command for move in again.value.result.schedule.moves] == [
        move.command for move in result.schedule.moves
    ]
    write(str(tmp_path / "race.md"), race.results[:1], ["of another process"])
    assert (tmp_path / "race.md").read_text().startswith("of another process\n| scenario | verdict |")
    race.results.clear()  # this test has not failed


SUITE = """
import logging
from lost_update_lab.scenarios.race import NotKept
from lost_update_lab.scenarios.result import Result

def test_forgotten(race):
    race.worker("Ann", print, 1)
    race.worker("Bob", print, 2)

def test_failed_before(race):
    race.worker("Ann", print, 1)
    assert False

def test_logs(race):
    logging.error("once in each schedule")
    raise NotKept(Result(name="it", verdict="violated", sentence="it is", bounds="all", exhausted=True))
"""


def test_what_is_shown_of_a_test(pytester: pytest.Pytester) -> None:
    """A test that explores nothing fails; what hundreds of schedules logged does not hide the order."""
    pytester.makepyfile(SUITE)
    done = pytester.runpytest("-p", "lost_update_lab.pytest_plugin", "-p", "no:django")
    done.assert_outcomes(passed=1, failed=2, errors=1)
    done.stdout.fnmatch_lines(
        ["nothing was explored: race has Ann and Bob, and the test ends without race.explore()"]
    )
    done.stdout.fnmatch_lines(["*What the schedules logged and printed is shown by the replay."])
    done.stdout.no_fnmatch_line("*once in each schedule*")


SIDE_BY_SIDE = """
from lost_update_lab.scenarios.result import Result

def test_one(race):
    race.results.append(Result(name="one", verdict="kept", sentence="no", bounds="all", exhausted=True))

def test_two(race):
    race.results.append(Result(name="two", verdict="kept", sentence="no", bounds="all", exhausted=True))

def test_mistaken(race):
    race.setup("no callable")
"""


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("processes", [0, 2])
def test_the_files_have_the_results_of_every_process(pytester: pytest.Pytester, processes: int) -> None:
    pytester.makepyfile(SIDE_BY_SIDE)
    files = ("--race-json=race.json", "--race-summary=race.md")
    plugins = ("-p", "lost_update_lab.pytest_plugin", "-p", "no:django")
    pytester.runpytest(f"-n{processes}", *plugins, *files).assert_outcomes(passed=2, failed=1)
    told = json.loads((pytester.path / "race.json").read_text())["results"]
    assert sorted((each["name"].rpartition("::")[2], each["verdict"]) for each in told) == [
        ("one", "kept"),
        ("test_mistaken", "mistake"),
        ("two", "kept"),
    ]
    summary = (pytester.path / "race.md").read_text()
    assert all(f"| {name} | **kept** |" in summary for name in ("one", "two"))


NOTED = """
import pytest
from lost_update_lab.scenarios.result import Mutation, Result, Tried

LOCK = Tried(Mutation("without FOR UPDATE", "shop.py:3", "SELECT"), "survives")
LEVEL = Tried(Mutation("without SERIALIZABLE", "shop.py:9", "BEGIN"), "violated")

@pytest.mark.parametrize("n", range(5))
def test_one(race, n):
    more = {"notes": ("the invariant is weak",)} if n else {"mutations": (LOCK, LEVEL)}
    race.results.append(Result(name=f"one {n}", verdict="kept", sentence="", bounds="", exhausted=True, **more))
"""


@pytest.mark.parametrize("processes", [0, 2])
def test_a_test_that_passes_shows_its_notes(pytester: pytest.Pytester, processes: int) -> None:
    """Nobody saw them."""
    plugins = ("-p", "lost_update_lab.pytest_plugin", "-p", "no:django", "-p", "xdist", f"-n{processes}")
    pytester.makepyfile(NOTED)
    done = pytester.runpytest(*plugins)
    done.assert_outcomes(passed=5)
    told = done.stdout.str().partition("= races that were kept: notes =")[2]
    lines = [line.strip() for line in told.splitlines()[1:5]]
    noted = dict(zip(lines[1::2], lines[::2], strict=True))  # with several processes, in any order
    assert noted.pop("mutations: 2 tried, 1 survive: shop.py:3  without FOR UPDATE: SELECT") == "one 0"
    assert noted.pop("the invariant is weak").endswith(" and 1 more")


OWN_SERVERS = """
import os
import pytest

@pytest.mark.parametrize("n", range(4))
def test_one(n):
    assert os.environ["REDIS_URL"]
    told = [os.environ.get("PYTEST_XDIST_WORKER", ""), os.environ["DATABASE_URL"], os.environ["REDIS_URL"]]
    with open(f"{os.environ['TOLD']}/{n}", "w") as file:
        file.write("\\n".join(told))
"""


@pytest.mark.deep
def test_each_process_of_xdist_has_servers_of_its_own(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They shared those of the process that had started them: one emptied what another was looking at."""
    for name in ("DATABASE_URL", "REDIS_URL", "PYTEST_XDIST_WORKER", "LOST_UPDATE_LAB_STARTED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TOLD", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    pytester.makeini("[pytest]\nlost_update_lab_servers = embedded")
    pytester.makepyfile(OWN_SERVERS)
    done = pytester.runpytest_subprocess(
        "-p", "lost_update_lab.pytest_plugin", "-p", "no:django", "-p", "xdist", "-n2"
    )
    done.assert_outcomes(passed=4)
    told = {tuple(each.read_text().splitlines()) for each in tmp_path.iterdir() if each.name.isdigit()}
    workers, databases, keys = map(set, zip(*told, strict=True))
    assert workers == {"gw0", "gw1"}
    assert len(databases) == len(keys) == 2


BROKEN = """
from lost_update_lab.scenarios.race import NotKept
from lost_update_lab.scenarios.result import Result
from lost_update_lab.scenarios.schedule import Schedule

def test_one(race):
    print("seen again by:", race.again)
    schedule = Schedule("v/3a", "violated", ("it is broken",), (), (), 10)
    found = Result(name="one", verdict="violated", sentence="no", bounds="all", exhausted=True, schedule=schedule)
    race.results.append(found)
    raise NotKept(found)
"""


@pytest.fixture
def below(pytester: pytest.Pytester) -> Path:
    """The user stands in a folder below that of the project."""
    pytester.makeini("[pytest]")
    folder = pytester.mkdir("tests")
    (folder / "test_it.py").write_text(BROKEN)
    pytester.makeconftest("")
    os.chdir(folder)
    return folder


def test_what_is_to_be_typed_works_where_the_user_stands(pytester: pytest.Pytester, below: Path) -> None:
    plugins = ("-p", "lost_update_lab.pytest_plugin", "-p", "no:django", "-s")
    done = pytester.runpytest(*plugins)
    done.stdout.fnmatch_lines(["*seen again by: lost-update-lab replay 'test_it.py::test_one/{id}'"])
    os.chdir(below.parent)
    done = pytester.runpytest(*plugins)
    done.stdout.fnmatch_lines(["*seen again by: lost-update-lab replay 'tests/test_it.py::test_one/{id}'"])


def test_pages(pytester: pytest.Pytester, below: Path) -> None:
    plugins = ("-p", "lost_update_lab.pytest_plugin", "-p", "no:django")
    done = pytester.runpytest(*plugins, "--race-page=pages")
    (page,) = (below / "pages").iterdir()
    assert "it is broken" in page.read_text()
    done.stdout.fnmatch_lines([f"*Page: pages/{page.name}"])


@pytest.mark.deep
def test_the_page_of_a_replay(
    below: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """In a process of its own, which is no part of this project."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p lost_update_lab.pytest_plugin -p no:django")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert main(["replay", "test_it.py::test_one/v/3a", "--page", "again.html"]) == 0
    assert "it is broken" in (below / "again.html").read_text()
    told = capfd.readouterr().out
    assert [line for line in told.splitlines() if "Page:" in line] == ["Page: again.html"]
    assert told.endswith("\nThe same came again: violated.\n")


NO_LONGER = """
import pytest
from lost_update_lab import Mistake

def test_gone(race):
    raise Mistake("there is no such schedule")

def test_mended(race): ...

def test_crossed(race):
    {stalled}
    raise NotKept(found)
"""


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("test", ["test_gone", "test_mended", "test_crossed"])
def test_a_replay_that_comes_to_something_else_says_so(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], test: str
) -> None:
    """The exit code was 0, as if the same had come again: any test that fails would do."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p lost_update_lab.pytest_plugin -p no:django")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    body = "\n    ".join(BROKEN.partition('print("seen again by:", race.again)')[2].strip().splitlines()[:-1])
    stalled = body.replace("violated", "stalled").replace("v/3a", "s/3a").replace("        ", "    ")
    imports = BROKEN.partition("def ")[0]
    pytester.makepyfile(
        test_it=imports + NO_LONGER.format(stalled="\n    ".join(map(str.strip, stalled.splitlines())))
    )
    assert main(["replay", f"test_it.py::{test}/v/3a"]) == 1
    assert "came again" not in capfd.readouterr().out
    if test == "test_crossed":
        assert main(["replay", f"test_it.py::{test}/s/3a"]) == 0
        assert capfd.readouterr().out.endswith("\nThe same came again: stalled.\n")


def test_a_replay_of_a_test_that_is_not_there(
    below: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """pytest's code 4 was ours, which no page names."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p lost_update_lab.pytest_plugin -p no:django")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert main(["replay", "test_it.py::test_gone/v/3a"]) == 2
    assert "pytest ended with code 4 instead of running test_it.py::test_gone" in capsys.readouterr().err


def test_a_race_passes(servers: None, race: Race) -> None:
    two(race, redeem_locked)
    assert race.explore(crashes=1, disposable=True).exhausted
    assert "| **kept** |" in markdown(race.results)


@pytest.mark.deep
def test_a_replay_of_what_is_mended_has_to_keep_every_order(servers: None, race: Race) -> None:
    two(race, redeem_locked)
    result = race.replay("v/3a", disposable=True)
    assert (result.verdict, result.exhausted) == ("kept", True)


@pytest.mark.deep
def test_a_replay_of_an_order_that_is_not_there_says_so(servers: None, race: Race) -> None:
    two(race, redeem_locked)
    with pytest.warns(
        UserWarning, match=r"schedule v/3z does not exist here.* Every order was searched in its place"
    ):
        result = race.replay("v/3z", disposable=True)
    assert (result.verdict, result.exhausted) == ("kept", True)


@pytest.mark.deep
def test_a_schedule_that_is_not_there(servers: None, race: Race, monkeypatch: pytest.MonkeyPatch) -> None:
    two(race, redeem_locked)
    monkeypatch.setenv(REPLAY, "v/3z")
    with pytest.raises(Mistake, match="schedule v/3z does not exist here"):
        race.explore(disposable=True)
    monkeypatch.setenv(REPLAY, "v/3")
    with pytest.raises(Mistake, match="not a schedule id"):
        race.explore(disposable=True)


@pytest.mark.django_db
def test_a_django_test_that_is_rolled_back(race: Race) -> None:
    two(race, redeem)
    with pytest.raises(Mistake, match=r"Use @pytest.mark.django_db\(transaction=True\)"):
        race.explore()


def test_a_setup_that_is_none(race: Race) -> None:
    with pytest.raises(Mistake, match="the setup is no callable, but str"):
        race.setup("CREATE TABLE …")  # type: ignore[type-var]
