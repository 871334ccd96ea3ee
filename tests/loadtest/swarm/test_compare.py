"""`manage.py compare` with a real swarm on real servers: what it says, and what it refuses to say."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from ledger.addresses import BASE_DIR
from ledger.models import Book, Entry
from loadtest.history.journal import SUFFIX
from loadtest.models import Result, Trial
from loadtest.servers import Postgres
from loadtest.servers.webserver import WebServer
from loadtest.trials.availability import missing
from loadtest.verdict.words import STOPPED
from lost_update_lab.embedded.ports import free_port
from tests.contracts import lost

FIELDS = (
    *("strategy", "verdict", "opening", "acknowledged", "indeterminate", "expected", "final", "lost_amount"),
    *(
        "lost_updates",
        "created_amount",
        "overlaps",
        "ops_per_s",
        "latency_ms",
        "retries",
        "deadlocks",
        "drift",
    ),
    *("claims", "agrees"),
)


def run_compare(output: Path, **options: Any) -> tuple[int, dict[str, Any]]:
    """Return (exit code, what compare.json holds)."""
    code = 0
    try:
        call_command("compare", output=output, **options)
    except SystemExit as ended:
        code = int(ended.code or 0)
    report = json.loads((output / "compare.json").read_text())
    assert lost("compare.json", report) == []
    return code, report


@pytest.mark.deep(short=False)
@pytest.mark.usefixtures("committed_db")
def test_third_party_locks_on_trial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = "tests.loadtest.third_party"
    code, report = run_compare(
        tmp_path, lock=[f"{here}:right", f"{here}:broken", f"{here}:needs_zookeeper"], users=8, seconds=3.0
    )
    results = {each["strategy"]: each for each in report["results"]}
    assert {slug: each["verdict"] for slug, each in results.items()} == {
        "no-lock": "lost",
        f"{here}:right": "kept",
        f"{here}:broken": "lost",
        f"{here}:needs_zookeeper": "not-run",
    }
    assert code == 1  # a lock that says nothing else claims to be one

    losing = results["no-lock"]
    assert not [name for name in FIELDS if name not in losing]
    assert losing["lost_amount"] > 0
    assert losing["agrees"]
    assert losing["expected"] - losing["final"] == -losing["drift"]
    assert losing["worst_loss"]["sentence"]
    assert results[f"{here}:broken"]["agrees"] is False
    assert "install" in results[f"{here}:needs_zookeeper"]["reason"]
    assert report["environment"]["versions"]["postgresql"].startswith("18")
    assert report["environment"]["cores"]
    assert "claims to withstand this, but does not" in capsys.readouterr().out

    kept = results[f"{here}:right"]
    workers = Entry.objects.filter(book_id=kept["book"]).values_list("worker", flat=True)
    assert len({worker.split(":")[1] for worker in workers}) > 1, "they met in one server process only"
    trial = Trial.objects.latest("started")
    assert trial.ended
    assert list(trial.results.values_list("strategy", "verdict")) == [
        (slug, each["verdict"]) for slug, each in results.items()
    ]
    assert Result.objects.get(trial=trial, strategy="no-lock").book == Book.objects.get(pk=losing["book"])


LOCK = """
def lock(name, redis):
    return redis.lock(name, timeout=10, sleep=0.01)
"""


@pytest.mark.whole_command
@pytest.mark.usefixtures("committed_db")
def test_from_another_folder_the_background_workers_find_the_lock_and_the_histories_lie_there(
    tmp_path: Path,
) -> None:
    (tmp_path / "mylocks.py").write_text(LOCK)
    words = "--lock mylocks:lock --workload imports --option lines=20 --users 4 --seconds 1 --history seen"
    done = subprocess.run(
        [sys.executable, str(BASE_DIR / "manage.py"), "compare", *words.split()],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert (tmp_path / "report/compare.json").exists(), done.stderr
    results = json.loads((tmp_path / "report/compare.json").read_text())["results"]
    assert [each["strategy"] for each in results] == ["no-lock", "mylocks:lock"]
    assert all(each["imported"]["ok"] > 0 for each in results), results[-1]
    assert results[-1]["verdict"] == "kept", results[-1]
    assert all(each["acknowledged"] > each["imported"]["ok"] for each in results), (
        "the swarm's part is missing"
    )
    assert len(list(tmp_path.glob(f"seen/*/*{SUFFIX}"))) >= 4
    assert not (BASE_DIR / "seen").exists()


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
def test_a_control_that_cannot_lose_proves_nothing(ledger: str, tmp_path: Path) -> None:
    """A single user has no contention: what no-lock kept, it kept by luck."""
    code, report = run_compare(tmp_path, host=ledger, strategy=["no-lock"], users=1, seconds=0.5)
    (control,) = report["results"]
    assert control["verdict"] == "inconclusive"
    assert control["agrees"] is None
    assert control["overlaps"] == 0
    assert "more workers" in control["remedy"]
    assert code == 3


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
def test_the_articles_experiment(ledger: str, tmp_path: Path) -> None:
    code, report = run_compare(tmp_path, host=ledger, preset="article-wide", strategy=["no-lock"])
    (control,) = report["results"]
    assert control["expected"] == control["acknowledged"] == 10
    assert control["verdict"] == "lost"  # all ten read within 100 ms, and each thinks 1–100 ms after that
    assert control["lost_amount"] == 10 - control["final"]
    assert control["looked"]["after_s"] == 1.0
    assert control["looked"]["finished"] + control["looked"]["unfinished"] == 10
    assert code == 0


@pytest.mark.usefixtures("committed_db")
def test_a_server_that_does_not_answer_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="does not answer") as raised:
        call_command("compare", host=f"http://127.0.0.1:{free_port()}", output=tmp_path)
    assert raised.value.returncode == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": ["hope"]}, "Known: no-lock"),
        ({"lock": ["setnx"]}, "module:callable"),
        ({"lock": ["tests.loadtest.third_party:nothing"]}, "cannot load"),
        ({"lock": ["nowhere:lock"]}, "cannot load"),
        ({"strategy": ["tokn"]}, "no strategy 'tokn': did you mean token[?] Known: "),
        ({"lock": ["./mylocks.py:mine"]}, "write mylocks:mine, the module .* without .py or a path"),
        ({"lock": ["mylocks.py:mine"]}, "write mylocks:mine, the module .* without .py or a path"),
        ({"lock": ["my/locks:mine"]}, "write my[.]locks:mine, the module .* without .py or a path"),
        ({"lock": ["mylocks:"]}, "write module:callable"),
        ({"accounts": 20_000}, "1 to 10000"),
        ({"lease": 9999.0}, "lease: seconds"),
        ({"strategy": ["watchdog-lua"], "lease": 0.5}, "watchdog-lua: .* uses EX/EXPIRE, give whole seconds"),
        (
            {"server_processes": 2, "host": "http://127.0.0.1:9"},
            "--server-processes is for the web server of this",
        ),
        ({"poll": 20.0}, "--poll is 20 s, .* over after 5 s .* write --poll 20ms"),
        ({"poll": 0.5, "seconds": 0.2}, "--poll is 0.5 s, .* over after 0.2 s"),
        *(
            (
                {"preset": "article", "workload": [word]},
                f"--preset article .* deposits: leave .* {word}, or give",
            )
            for word in ("stock", "all")
        ),
    ],
)
def test_bad_usage_says_what_is_wrong(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(CommandError, match=message) as raised:
        call_command("compare", output=tmp_path, **options)
    assert raised.value.returncode == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--users", "0"],
        ["--think", "fast"],
        ["--preset", "none"],
        ["--users", "x"],
        ["--seconds", "0"],
        ["--seconds", "0ms"],
    ],
)
def test_bad_options_are_refused_by_the_parser(arguments: list[str]) -> None:
    with pytest.raises(CommandError, match=r"whole number|no duration|invalid choice|more than 0"):
        call_command("compare", *arguments)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("compare --users 1000000", "from 1 to 1,000: .* 128 requests at once, .* give a longer --think"),
        ("compare --accounts 1000000", "from 1 to 10,000"),
        ("compare --seconds 9999999", r"a day \(86400\) at most"),
        (f"compare --seconds {'9' * 400}", r"a day \(86400\) at most"),
        ("trust --seconds 9999999", r"a day \(86400\) at most"),
        ("trust --budget nan", "no duration"),
        ("explore --budget nan", "no duration"),
        ("explore --slack 1000000000", "from 0 to 86,400,000"),
        ("explore --work -1", "from 0 to 86,400,000"),
        ("explore --lanes 1000000", "from 1 to 64"),
        ("counterexamples --check --shortest -1", "from 1 to 1,000"),
        ("faults --repeat 1000000", "from 1 to 1,000"),
        ("bench locks --rounds 1000000", "from 1 to 1,000"),
        ("samples --lines 1000000000", "1 to 100,000"),
    ],
)
def test_a_number_beyond_any_machine_is_refused(command: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        call_command(*command.split())


def test_what_cannot_be_tried_here_has_a_reason() -> None:
    assert missing("setnx", "postgres") is None
    reason, _ = missing("select-for-update", "redis") or ("", "")
    assert "only on" in reason
    with pytest.raises(ValueError, match="Known: postgres"):
        missing("setnx", "tape")


@pytest.mark.deep
@pytest.mark.usefixtures("committed_db")
def test_several_workloads_have_a_matrix(
    ledger: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked_for = {"strategy": ["redis-watch"], "workload": ["deposits", "stock", "deposits"]}
    _, report = run_compare(tmp_path, **asked_for, host=ledger, users=4, seconds=0.2, store="postgres")
    told = [(each["workload"], each["strategy"], each["verdict"]) for each in report["results"]]
    assert not report["stopped"]
    assert [(workload, strategy) for workload, strategy, _ in told] == [
        (workload, strategy) for workload in ("deposits", "stock") for strategy in ("no-lock", "redis-watch")
    ]
    assert {word for _, strategy, word in told if strategy == "redis-watch"} == {"not-run"}
    out = capsys.readouterr().out
    for name in ("compare.json", "index.html"):
        assert f"Written: {tmp_path / name}" in out
    page = (tmp_path / "index.html").read_text()
    assert 'id="stock"' in page
    assert "compare --strategy redis-watch --workload deposits --workload stock --users 4 " in page
    begun = Trial.objects.filter(command="compare").order_by("-started")[1].started
    assert report["started"] == begun.isoformat()  # of the first workload, not of the last
    assert "redis-watch, stock: it keeps its accounts only on redis" in out
    (row,) = (line for line in out.splitlines() if "│ redis-watch" in line)
    assert row.count("not-run") == 2


@pytest.mark.deep
@pytest.mark.parametrize(
    ("command", "name", "nowhere"),
    [
        ("compare", "DATABASE_URL", "postgresql://lab@127.0.0.1:{port}/lab"),
        ("reconcile", "DATABASE_URL", "postgresql://lab@127.0.0.1:{port}/lab"),
        ("compare", "REDIS_URL", "redis://127.0.0.1:{port}"),
    ],
)
def test_a_database_that_does_not_answer_is_reported_in_a_sentence(
    command: str, name: str, nowhere: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, str(BASE_DIR / "manage.py"), command],
        cwd=tmp_path,
        env={**os.environ, name: nowhere.format(port=free_port())},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 2
    assert "does not answer: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.whole_command
def test_a_database_that_dies_in_a_comparison_takes_no_results_along(
    postgres_server: Callable[..., Postgres], tmp_path: Path
) -> None:
    server = postgres_server()
    words = "--strategy", "select-for-update", "--users", "4", "--seconds", "6", "--output", str(tmp_path)
    given = {"DATABASE_URL": server.url}
    with (
        WebServer(workers=2, environment=given) as web,
        subprocess.Popen(
            [sys.executable, "manage.py", "compare", *words, "--host", web.url],
            cwd=BASE_DIR,
            env={**os.environ, **given},
            stderr=subprocess.PIPE,
            text=True,
        ) as command,
    ):
        assert command.stderr
        assert any("no-lock: " in line for line in command.stderr)
        server.kill()
        _, told = command.communicate(timeout=250)
    assert command.returncode == 2, told
    assert "Traceback" not in told
    for name in ("compare.json", "index.html"):
        assert f"Written: {tmp_path / name}" in told
    results = json.loads((tmp_path / "compare.json").read_text())["results"]
    assert results[0]["strategy"] == "no-lock"


@pytest.mark.deep_after(1)
@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize("as_json", [False, True])
def test_a_run_of_nothing_takes_no_earlier_results_away(
    tmp_path: Path, as_json: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(settings.DATABASES, "mariadb", raising=False)  # a machine without it
    monkeypatch.delattr("loadtest.swarm.compare.WebServer")  # which it does not need
    file = tmp_path / "compare.json"
    file.write_text('{"results": ["of an earlier run"]}')
    with pytest.raises(SystemExit) as ended:
        call_command("compare", output=tmp_path, strategy=["redis-watch"], store="mariadb", json=as_json)
    assert ended.value.code == 3
    assert file.read_text() == '{"results": ["of an earlier run"]}'
    told = capsys.readouterr()
    words = f"Not written, because nothing was run: {file} stays as it was"
    assert words in (told.err if as_json else told.out)
    assert not as_json or {each["verdict"] for each in json.loads(told.out)["results"]} == {"not-run"}
    assert Trial.objects.latest("started").ended


@pytest.mark.whole_command
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_either_signal_keeps_what_was_measured(tmp_path: Path, end: signal.Signals) -> None:
    words = "--strategy", "select-for-update", "--users", "4", "--seconds", "6", "--output", str(tmp_path)
    with subprocess.Popen(
        [sys.executable, "manage.py", "compare", *words], cwd=BASE_DIR, stderr=subprocess.PIPE, text=True
    ) as command:
        assert command.stderr
        assert any(
            "no-lock: " in line for line in command.stderr
        )  # the next trial takes six seconds and more
        command.send_signal(end)
        _, told = command.communicate(timeout=200)
    assert command.returncode == 130, told
    for name in ("compare.json", "index.html"):
        assert f"Written: {tmp_path / name}" in told
    report = json.loads((tmp_path / "compare.json").read_text())
    assert report["stopped"]
    assert [(each["strategy"], each.get("reason")) for each in report["results"]] == [
        ("no-lock", None),
        ("select-for-update", STOPPED),
    ]
    assert "was stopped before its end" in (tmp_path / "index.html").read_text()
