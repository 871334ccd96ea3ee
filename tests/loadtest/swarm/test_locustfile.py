"""The locustfile as a Locust user starts it: headless, and with the web page."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from ledger.strategies import CARD
from loadtest.swarm import options
from lost_update_lab.embedded.ports import free_port

LOCUST = [sys.executable, "-m", "locust", "-f", "loadtest/swarm/locustfile.py"]
#: two users that leave one barrier together and think for 30 ms have read the same balance
MEETING = ["--users", "2", "--spawn-rate", "2", "--think", "30ms-30ms"]


def headless(ledger: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*LOCUST, "--headless", "--host", ledger, *MEETING, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=280)


@pytest.mark.deep
def test_lost_money_is_the_exit_code(ledger: str, tmp_path: Path) -> None:
    port = str(free_port())
    done = headless(
        ledger,
        *("--strategy", "no-lock", "--run-time", "4s", "--processes", "2"),
        *("--master-port", port, "--master-bind-port", port),
        *("--html", str(tmp_path / "r.html"), "--csv", str(tmp_path / "r"), "--history", str(tmp_path)),
    )
    assert done.returncode == 1, done.stderr
    assert "Lost updates: " in done.stderr
    assert (tmp_path / "r.html").exists()
    assert (tmp_path / "r_stats.csv").exists()
    told = json.loads((tmp_path / options.REPORT).read_text())
    assert told["totals"]["ok"] > 2
    assert told["totals"]["info"] == 0
    assert len(list(tmp_path.glob("*.history.jsonl"))) == 2


@pytest.mark.deep
def test_kept_money_is_exit_code_0(ledger: str) -> None:
    done = headless(ledger, "--strategy", "select-for-update", "--iterations", "5")
    assert done.returncode == 0, done.stderr
    assert "Lost amount: 0" in done.stderr
    assert "Operations ok / fail / unknown: 10 / 0 / 0" in done.stderr


@pytest.mark.deep
def test_a_missing_server_is_reported_once_and_without_a_traceback() -> None:
    done = headless(f"http://127.0.0.1:{free_port()}", "--run-time", "2s")
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("is the server up? `make serve`") == 1
    assert "Traceback" not in done.stderr


@pytest.mark.deep
def test_a_test_in_which_nothing_was_acknowledged_is_no_success(ledger: str) -> None:
    body = json.dumps({"strategy": "no-lock", "accounts": [{"account": "B1"}]}).encode()
    asked = urllib.request.Request(f"{ledger}/api/books", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=10) as answer:
        book = json.load(answer)["book"]["id"]
    done = headless(ledger, "--book", book, "--iterations", "2")
    assert done.returncode == 3, done.stderr
    assert "Operations ok / fail / unknown: 0 / 4 / 0" in done.stderr


def test_a_wrong_option_ends_the_test(ledger: str) -> None:
    done = headless(ledger, "--workload-options", "accounts=5", "--run-time", "1s")
    assert done.returncode == 2, done.stderr
    assert "no option accounts" in done.stderr


def test_an_unknown_strategy_is_bad_usage(ledger: str) -> None:
    done = headless(ledger, "--strategy", "hope", "--run-time", "1s")
    assert done.returncode == 2
    assert "invalid choice: 'hope'" in done.stderr
    assert "optimistic-version" in done.stderr


@pytest.mark.deep
def test_without_a_ledger_the_drop_down_offers_the_card() -> None:
    assert options.offered(["--host", f"http://127.0.0.1:{free_port()}"]) == CARD


def post(url: str, **form: Any) -> tuple[int, str]:
    try:
        asked = urllib.request.Request(url, urllib.parse.urlencode(form).encode(), {"Origin": url})
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def get(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return str(answer.read().decode())


def eventually(ask: Any, seconds: float = 100) -> Any:
    """The first true answer of `ask()`."""
    deadline = time.monotonic() + seconds
    while not (answer := ask()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.05)
    return answer


@pytest.fixture
def web_ui(ledger: str, tmp_path: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Locust's web page (its address, its process), ended after the test."""
    port = free_port()
    command = [*LOCUST, "--host", ledger, "--web-port", str(port), *MEETING]
    with (tmp_path / "locust.log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        assert process.poll() is None, (tmp_path / "locust.log").read_text()
        try:
            return bool(get(url))
        except OSError:
            return False

    try:
        eventually(answers)
        yield url, process
    finally:
        process.kill()
        process.wait()


def lost_so_far(url: str, wanted: str) -> str:
    """The row of the tab, once it holds the wanted text; "" before."""
    (table,) = json.loads(get(f"{url}/stats/requests"))["extended_stats"]
    told = next(str(row["value"]) for row in table["data"] if row["name"] == "Lost so far")
    return told if wanted in told else ""


@pytest.mark.deep
def test_the_web_page(web_ui: tuple[str, subprocess.Popen[bytes]]) -> None:
    url, process = web_ui
    listening = {c.laddr.ip for c in psutil.Process(process.pid).net_connections() if c.status == "LISTEN"}
    assert listening == {"127.0.0.1"}  # though it was not asked for
    page = get(url)
    assert "select-for-update" in page  # the drop-down
    assert "Lost amount" in page  # the tab
    form = {"user_count": 2, "spawn_rate": 2, "strategy": "no-lock", "contention": "hot"}

    status, text = post(f"{url}/swarm", **{**form, "strategy": "hope"})
    assert (status, "Known: no-lock" in text) == (400, True)
    status, text = post(f"{url}/swarm", **{**form, "think": "soon"})
    assert (status, "write 5ms" in text) == (400, True)
    status, text = post(f"{url}/swarm", **{**form, "workload_options": "accounts=5"})
    assert (status, "no option accounts" in text) == (400, True)
    status, text = post(f"{url}/swarm", **{**form, "history": "/tmp/anywhere"})  # no field of the page
    assert (status, "history" in text) == (400, True)
    for headers in ({"Origin": "http://evil.example"}, {}):  # a browser always sends the page's origin
        foreign = urllib.request.Request(f"{url}/swarm", urllib.parse.urlencode(form).encode(), headers)
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(foreign, timeout=10)

    assert post(f"{url}/swarm", **form)[0] == 200
    eventually(lambda: json.loads(get(f"{url}/stats/requests"))["state"] == "running")
    eventually(lambda: int(json.loads(get(f"{url}/stats/requests"))["total_rps"]) > 0)
    status, text = post(f"{url}/swarm", **{**form, "strategy": "setnx"})
    assert (status, "a test is running" in text) == (409, True)

    told = eventually(lambda: lost_so_far(url, "█"))
    assert int(told.split()[-1].replace(",", "")) > 0
    live = get(f"{url}/lost-amount/live")
    assert ("The test runs." in live, "<svg" in live, 'http-equiv="refresh"' in live) == (True, True, True)
    assert "Money lost, as a live chart" in page

    post(f"{url}/stop")
    books = eventually(lambda: json.loads(get(f"{url}/lost-amount"))["books"])
    assert books["lost_amount"] > 0
    rows = json.loads(get(f"{url}/stats/requests"))["extended_stats"][0]["data"]
    assert {"name": "Lost amount", "value": str(books["lost_amount"])} in rows
    assert f"Lost amount,{books['lost_amount']}" in get(f"{url}/lost-amount/csv")
    live = get(f"{url}/lost-amount/live")
    assert (f"<b>{books['lost_amount']:,}</b>" in live, 'http-equiv="refresh"' in live) == (True, False)

    os.kill(process.pid, signal.SIGINT)
    assert process.wait(timeout=100) == 1  # money was lost
