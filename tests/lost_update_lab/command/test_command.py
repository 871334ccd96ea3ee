"""The command `lost-update-lab`: exit codes, reports, replay, a schedule as a test."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psycopg
import pytest

from lost_update_lab.command.main import main, parser
from lost_update_lab.command.replay import as_test
from lost_update_lab.scenarios.race import NotKept, Race
from lost_update_lab.under_test.scenario import Mistake
from tests.contracts import CONTRACTS, lost, options
from tests.lost_update_lab.command import trials

HERE = trials.__name__
Mutations = Callable[[str, str], list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def servers(scenario_urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setenv("DATABASE_URL", scenario_urls[0])
    monkeypatch.setenv("REDIS_URL", scenario_urls[1])
    monkeypatch.setenv("LOST_UPDATE_LAB_DISPOSABLE", "1")


@pytest.fixture
def mutations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Mutations:
    """`mutations("seated", TESTS)`: those of a scenario of `trials`, each tried by a file of tests, too."""

    def tried(scenario: str, tests: str) -> list[dict[str, Any]]:
        (tmp_path / "test_shop.py").write_text(tests)
        monkeypatch.setenv(
            "PYTEST_ADDOPTS", "-p lost_update_lab.pytest_plugin -p no:cacheprovider -p no:django"
        )
        given = f"{tmp_path}/test_shop.py -c /dev/null --rootdir {Path.cwd()}"
        assert main(["explore", f"{HERE}:{scenario}", "--mutate", "--tests", given, "--json"]) == 0
        (result,) = json.loads(capsys.readouterr().out)["results"]
        found: list[dict[str, Any]] = result["mutations"]
        return found

    return tried


@pytest.mark.deep
def test_explore_writes_its_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary, junit, page = (tmp_path / name for name in ("summary.md", "junit.xml", "page.html"))
    reports = ["--summary", str(summary), "--junit", str(junit), "--page", str(page)]
    assert main(["explore", f"{HERE}:voucher", "--crashes", "1", "--json", *reports]) == 1
    told = json.loads(capsys.readouterr().out)
    assert lost("lost-update-lab", told) == []
    (result,) = told["results"]
    assert (result["verdict"], result["exhausted"], result["kept"]) == ("violated", True, False)
    assert result["again"] == f"lost-update-lab replay {HERE}:voucher/{result['id']} --crashes 1"
    assert result["schedule"]["moves"][0]["who"] == "Bob"
    assert f"| {HERE}:voucher | **violated** |" in summary.read_text()
    assert '"who": "Ann"' in page.read_text()
    assert "http" not in page.read_text()  # no request leaves it
    (case,) = ElementTree.fromstring(junit.read_text()).findall("testcase")
    assert case.find("failure") is not None
    again = tmp_path / "again.html"
    assert main(["replay", f"{HERE}:voucher/{result['id']}", "--crashes", "1", "--page", str(again)]) == 0
    assert '"who": "Ann"' in again.read_text()
    told = capsys.readouterr().out
    assert "one schedule of Ann and Bob" in told
    assert told.endswith(f"\nPage: {again}\n\nThe same came again: violated.\n")


def test_an_order_that_comes_to_something_else(capsys: pytest.CaptureFixture[str]) -> None:
    """An exit code was all that told it."""
    assert main(["replay", f"{HERE}:voucher/v/"]) == 1
    told = "not the same again: the id says violated, and this order comes to kept now. The code or its bounds have"
    assert told in capsys.readouterr().err
    assert main(["replay", f"{HERE}:voucher/k/"]) == 0


def test_every_option_that_was_promised() -> None:
    """tests/contracts.json; a new one is added there."""
    there = {each for each in options(parser()) if not each.endswith("--help")}
    assert there == set(CONTRACTS["library_options"])


@pytest.mark.parametrize("command", ["explore", "trust", "replay", "suggest"])
def test_the_help_says_what_each_option_and_each_exit_code_means(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "Exit codes: 0:" in told
    if command != "suggest":
        assert "--crashes N a worker dies before any of its commands" in told


@pytest.mark.deep
def test_a_scenario_that_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", f"{HERE}:voucher_locked"]) == 0
    assert capsys.readouterr().out.startswith("kept: exhausted within these bounds")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("lock", "code", "hazards"),
    [
        ("get_then_set", 1, {"contention": "violated"}),
        ("advisory", 0, {"contention": "kept", "crash": "kept", "lost-reply": "kept"}),
        ("leased", 1, {"contention": "kept", "crash": "kept", "pause": "violated", "lost-reply": "kept"}),
        ("refuses_at_once", 1, {"contention": "kept", "crash": "stalled", "pause": "violated"}),
        ("never_given_back", 1, {"contention": "stalled"}),
        pytest.param("get_then_set_asyncio", 1, {"contention": "violated"}, marks=pytest.mark.deep),
        ("advisory_asyncio", 0, {"contention": "kept", "crash": "kept", "lost-reply": "kept"}),
        pytest.param("two_coroutines", 1, {"contention": "violated"}, marks=pytest.mark.deep),
        ("TriesOnce", 1, {"contention": "kept", "crash": "stalled"}),
        pytest.param(
            "leased_asyncio",
            1,
            {"contention": "kept", "crash": "kept", "pause": "violated", "lost-reply": "kept"},
            marks=pytest.mark.deep,
        ),
    ],
)
def test_trust(lock: str, code: int, hazards: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust", f"{HERE}:{lock}", "--json"]) == code
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert hazards.items() <= result["hazards"].items()
    assert result["exhausted"]


@pytest.mark.parametrize(
    ("lock", "word"), [("refuses_and_rolls_back", "kept"), ("keeps_its_session_lock", "stalled")]
)
def test_a_refusal_that_rolls_back_is_an_answer(
    lock: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The holder was inside when the server refused. It had left when the ROLLBACK was done, and that was a stall."""
    main(["trust", f"{HERE}:{lock}", "--crashes", "1", "--json"])
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["verdict"] == word


def test_a_lock_with_a_table_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """It was refused: "make it in the setup", which `trust` has none of."""
    assert main(["trust", f"{HERE}:makes_its_table", "--crashes", "1", "--json"]) == 1
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["hazards"] == {"contention": "kept", "crash": "stalled"}


def test_a_lock_that_wakes_tasks_of_its_own_process(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust", f"{HERE}:woken_by_its_holder", "--faults", "0"]) == 2
    assert "it waits for a lock inside of this process (trials.py, line " in capsys.readouterr().err


def test_a_lock_names_its_setup(capsys: pytest.CaptureFixture[str]) -> None:
    """A table that a migration makes is no part of the lock's code."""
    assert main(["trust", f"{HERE}:ARow", "--crashes", "1", "--json"]) == 1
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["hazards"] == {"contention": "kept", "crash": "stalled"}


def test_a_lock_whose_table_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trust", f"{HERE}:a_row"]) == 2
    assert (
        "A lock whose table must exist names what makes it: `a_row.setup = make_table`"
        in capsys.readouterr().err
    )


@pytest.mark.deep
def test_a_third_caller(capsys: pytest.CaptureFixture[str]) -> None:
    lock = ["trust", f"{HERE}:lets_the_third_in", "--faults", "0", "--workers", "3", "--json"]
    assert main(lock) == 1
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert result["again"].startswith(f"lost-update-lab replay trust3:{HERE}:lets_the_third_in/v/")
    assert main(["replay", f"trust3:{HERE}:lets_the_third_in/{result['id']}", "--faults", "0"]) == 0
    assert "bank(race, lets_the_third_in, workers=3)" in as_test(f"trust3:{HERE}:lets_the_third_in", "v/3a")


@pytest.mark.deep
def test_trust_beside_a_table_account_of_the_users(scenario_urls: tuple[str, str]) -> None:
    """The bank's table has a name of its own, and is gone afterwards; theirs is as it was."""
    with psycopg.connect(scenario_urls[0], autocommit=True) as link:
        link.execute("CREATE TABLE account (id int, owner text); INSERT INTO account VALUES (7, 'theirs')")
        try:
            assert main(["trust", f"{HERE}:get_then_set"]) == 1
            assert link.execute("SELECT * FROM account").fetchall() == [(7, "theirs")]
            assert link.execute("SELECT to_regclass('lost_update_lab_account')").fetchone() == (None,)
        finally:
            link.execute("DROP TABLE account")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["trust", f"{HERE}:no_lock"], "is not a lock: a lock takes a name and gives a context manager"),
        (
            ["trust", f"{HERE}:no_lock_either"],
            f"{HERE}:no_lock_either is not a lock: it returned 42, which is neither",
        ),
        (["trust", f"{HERE}:a_coroutine"], "is not a lock: it returned <coroutine object a_coroutine at"),
        (
            ["explore", "nothing:here"],
            "cannot import nothing:here (No module named 'nothing'). Check the spelling",
        ),
        (
            ["explore", "tests.lost_update_lab.command.unloadable:here"],
            "unloadable cannot be loaded: ValueError: cannot be served (tests/lost_update_lab/command/unloadable.py:3",
        ),
        (["explore", "nothing"], "expected module:name, for example shop.scenarios:voucher; got 'nothing'"),
        (["explore", f"{HERE}:HERE"], "cannot import"),
        (
            ["explore", f"{HERE}:no_scenario"],
            "no_scenario is not a scenario: a scenario takes exactly one argument, `race`",
        ),
        (["explore", f"{HERE}:cannot_be_written"], "cannot_be_written raised ValueError: so it is"),
        (["replay", "nonsense"], "not a schedule id: 'nonsense'"),
        (
            ["trust", f"{HERE}:leased", "--page", "/nowhere/page.html"],
            "--page /nowhere/page.html: no file can be",
        ),
        (["replay", f"{HERE}:voucher/v/!"], "not a schedule id: "),
        (["replay", f"{HERE}:voucher/v/9999999999999999a"], "is no schedule: none is that long"),
    ],
)
def test_bad_usage(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert told in capsys.readouterr().err


def test_a_schedule_as_a_test() -> None:
    made = as_test(f"{HERE}:voucher_locked", "v/3a")
    assert made.splitlines()[0] == f"from {HERE} import Race, one_voucher, redeem_locked"
    assert "def test_voucher_locked_in_the_order_3a(race" in made
    assert "race.replay('v/3a', crashes=1)" in made
    assert "race.replay('v/3a')" in as_test(f"{HERE}:voucher", "v/3a")
    compile(as_test(f"{HERE}:voucher_by_modules", "v/3a"), "pasted", "exec")
    assert as_test(f"{HERE}:voucher_by_modules", "v/3a").splitlines()[:3] == [
        "import concurrent.futures as futures",
        "import time",
        f"from {HERE} import Race, _customer, one_voucher, redeem",
    ]


@pytest.mark.parametrize(
    "options",
    [("--budget", "0"), ("--budget", "nan"), ("--slack", "-1"), ("--crashes", "0"), ("--pauses", "x")],
)
def test_options_that_are_no_bounds(options: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    """A traceback, and the exit code of a lock that is broken; `--crashes 0` tried crashes."""
    with pytest.raises(SystemExit) as stopped:
        main(["trust", f"{HERE}:leased", *options])
    assert stopped.value.code == 2
    assert f"argument {options[0]}" in capsys.readouterr().err


IN_CLASSES = """
class TestOther:
    def test_one(self, race): ...

class TestVoucher:
    @pytest.mark.parametrize("n", [1, 2])
    def test_one(self, race, n):
        race.explore(crashes=n)
"""


def test_a_schedule_of_a_method_as_a_test(tmp_path: Path) -> None:
    """The first function of that name was printed, with nothing that says where it belongs."""
    (file := tmp_path / "test_it.py").write_text(IN_CLASSES)
    assert as_test(f"{file}::TestVoucher::test_one[2]", "v/3a").splitlines() == [
        "# a method: paste it into TestVoucher",
        "# broken for [2]: leave only this case to `parametrize`",
        "@pytest.mark.parametrize('n', [1, 2])",
        "def test_one_in_the_order_3a(self, race, n):",
        "    race.replay('v/3a', crashes=n)",
    ]
    for missing in ("TestVoucher::test_two", "TestNone::test_one"):
        with pytest.raises(Mistake, match="there any more"):
            as_test(f"{file}::{missing}", "v/3a")
    with pytest.raises(Mistake, match="there is no file"):
        as_test(f"{file}x::test_one", "v/3a")


@pytest.mark.deep
@pytest.mark.parametrize(
    ("command", "prefix", "of", "bounds"),
    [
        ("explore", "", "voucher_in_two_commits", ["--crashes", "1"]),
        ("explore", "", "voucher_in_two_commits", ["--faults", "1", "--budget", "30"]),
        ("trust", "trust:", "get_then_set", []),
        pytest.param("trust", "trust:", "leased", ["--pauses", "1"], marks=pytest.mark.deep),
    ],
)
def test_a_schedule_as_a_test_breaks_in_that_order(
    command: str, prefix: str, of: str, bounds: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, f"{HERE}:{of}", *bounds, "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["results"]
    assert main(["replay", f"{prefix}{HERE}:{of}/{found['id']}", *bounds, "--as-test"]) == 0
    pasted: dict[str, Any] = {}
    exec(capsys.readouterr().out, pasted)
    (test,) = (each for name, each in pasted.items() if name.startswith(f"test_{of}_in_the_order_"))
    with pytest.raises(NotKept) as broken:
        test(race := Race("pasted"))
    assert len(race.results) == 1
    again = broken.value.result
    assert again.replayed
    assert (again.verdict, again.id) == (found["verdict"], found["id"])


def test_the_bounds_of_the_command_line_win_in_a_test() -> None:
    made = as_test(f"{HERE}:voucher_locked", "v/3a", {"pauses": 2, "budget": 5.0})
    assert "race.replay('v/3a', pauses=2, budget=5.0)" in made
    assert "race.replay('v/3a', deadlocks=False)" in as_test(f"{HERE}:voucher", "v/3a", {"deadlocks": False})
    assert "race.replay('v/3a', crashes=1, budget=5.0)" in as_test(
        f"{HERE}:voucher_locked", "v/3a", {"budget": 5.0}
    )


@pytest.mark.deep
def test_a_replay_has_no_budget(capsys: pytest.CaptureFixture[str]) -> None:
    """It may take as long as somebody stands at a breakpoint; a search has ended by then."""
    short = ["--budget", "0.001"]
    assert main(["explore", f"{HERE}:voucher", *short]) > 1
    assert "the budget of 0.001 s ended" in "".join(capsys.readouterr())
    assert main(["replay", f"{HERE}:voucher/v/3a", *short]) == 0


SHOP_TESTS = """
from tests.lost_update_lab.scenarios.shop import one_voucher, redeem_locked
import os, psycopg

def test_redeem():
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as sql:
        sql.execute("DROP TABLE IF EXISTS voucher, redemption")
        one_voucher()
        assert redeem_locked("XMAS", 1, sql) == "redeemed"
        sql.execute("DROP TABLE voucher, redemption")
"""


@pytest.mark.deep
def test_a_mutation_that_neither_a_schedule_nor_a_test_misses(mutations: Mutations) -> None:
    words = {each["mutation"]["kind"]: each["word"] for each in mutations("voucher_locked", SHOP_TESTS)}
    assert words == {
        "without the lock": "violated",
        "with the lock after the read": "violated",
        "without the transaction": "violated",
    }


SEATED = """
from tests.lost_update_lab.command.trials import seats, sit
import os, psycopg, pytest

def test_a_guest_sits_once():
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as sql:
        sql.execute("DROP TABLE IF EXISTS seat")
        seats()
        sit(1, "Ann", sql)
        try:
            with pytest.raises(psycopg.errors.UniqueViolation):
                sit(2, "Ann", sql)
        finally:
            sql.execute("DROP TABLE seat")
"""


@pytest.mark.deep
@pytest.mark.parametrize(
    ("tests", "words"),
    [
        (
            "def test_nothing(): ...",
            [("undecided", "no schedule breaks; none of the tests makes its table")] * 2,
        ),
        (SEATED, [("a test", ""), ("survives", "nor does a test")]),
    ],
)
def test_a_constraint_that_only_a_test_misses(
    tests: str, words: list[tuple[str, str]], mutations: Mutations
) -> None:
    told = mutations("seated", tests)
    found = {each["mutation"]["what"]: (each["word"], each["told"]) for each in told}
    assert found == dict(zip(["seat: seat_guest_key", "seat: seat_number_check"], words, strict=True))


def test_ctrl_c_in_the_middle_of_a_search() -> None:
    """It leaves nothing behind: the next one can begin at once."""
    command = [sys.executable, "-m", "lost_update_lab.command.main", "explore", f"{HERE}:endless"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        while "asked" not in process.stdout.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        told = process.communicate()[1]
    assert process.returncode == 130
    assert told.startswith("lost-update-lab was interrupted. ")
    assert "Traceback" not in told
    assert main(["explore", f"{HERE}:seated"]) == 0
