"""The history survives the death of the process that writes it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ledger.reconcile import ClientOutcome
from loadtest.history.calls import Call, CallHistory, percentiles, read
from loadtest.history.journal import SUFFIX, Journal
from loadtest.history.observed import ClientAnswers

WRITER = """
import sys
from ledger.reconcile import ClientOutcome
from loadtest.history.journal import Journal
journal = Journal(sys.argv[1])
journal.invoke("a", [("A1", 5)], "w")
journal.complete("a", ClientOutcome.OK, retries=2)
journal.invoke("b", [("A1", 7), ("A2", -7)], "w")
print("under way", flush=True)
sys.stdin.read()
"""


def test_a_killed_client_leaves_its_history(tmp_path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"under way\n"
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    history = read(tmp_path)
    assert [(call.key, call.outcome, call.answered) for call in history.calls] == [
        ("a", ClientOutcome.OK, True),
        ("b", ClientOutcome.INFO, False),  # it may be applied at any time from now on
    ]
    assert history.counts() == {
        "ok": 1,
        "fail": 0,
        "info": 1,
        "unanswered": 1,
        "busy": 0,
        "looks": 0,
    }
    operations = history.operations()
    assert [(each.key, each.amount) for each in operations["A1"]] == [("a", 5), ("b", 7)]
    assert [(each.key, each.amount) for each in operations["A2"]] == [("b", -7)]
    assert history.rates()["retries"] == 2


def test_processes_are_merged_in_the_order_of_time(tmp_path: Path) -> None:
    first, second = Journal(tmp_path), Journal(tmp_path)
    first.invoke("a", [("A1", 1)], "w1")
    second.invoke("b", [("A1", 2)], "w2")
    second.complete("b", ClientOutcome.FAIL, busy=True, error="busy: no lock")
    first.complete("a", ClientOutcome.OK)
    history = read(tmp_path)
    assert [call.key for call in history.calls] == ["a", "b"]
    assert history.errors() == {"busy: no lock": 1}
    assert history.counts()["busy"] == 1


def test_the_answers_since_the_hazard_are_those_of_the_calls_that_had_none_before(tmp_path: Path) -> None:
    """By their keys, not by their times: the clock of a client may jump."""
    journal = Journal(tmp_path)
    for key, outcome, busy in (
        ("a", ClientOutcome.OK, False),
        ("b", ClientOutcome.FAIL, True),
        ("c", ClientOutcome.FAIL, False),
    ):
        journal.invoke(key, [("A1", 1)], "w")
        journal.complete(key, outcome, busy=busy)
    journal.invoke("d", [("A1", 1)], "killed")
    journal.invoke("e", [("A1", 1)], "w")
    journal.complete("e", ClientOutcome.INFO)
    history = read(tmp_path)
    assert history.answers() == ClientAnswers(acknowledged=1, declined=1, refused=1, unknown=1)
    assert history.answers({"a", "c"}) == ClientAnswers(refused=1, unknown=1)
    assert history.answers({"a", "c"}, busy_is_an_answer=True) == ClientAnswers(declined=1, unknown=1)


def test_a_torn_last_line_is_no_event_but_garbage_inside_is_an_error(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.invoke("a", [("A1", 1)], "w")
    with journal.path.open("ab") as file:
        file.write(b'{"event": "ok", "ke')
    assert [call.outcome for call in read(tmp_path).calls] == [ClientOutcome.INFO]
    (tmp_path / f"z{SUFFIX}").write_bytes(b"garbage\n")
    with pytest.raises(ValueError, match="line 1: not an event"):
        read(tmp_path)


FULL_DISK = """
import os, resource, sys
from ledger.reconcile import ClientOutcome
from loadtest.history.journal import Journal
journal = Journal(sys.argv[1])
journal.invoke("a", [("A1", 5)], "w")
here, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(journal.path) + 20, most))
for note in (lambda: journal.complete("a", ClientOutcome.OK), lambda: journal.invoke("b", [("A1", 7)], "w")):
    try:
        note()
    except OSError as error:
        print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (here, most))
journal.invoke("c", [("A1", 9)], "w")
journal.complete("c", ClientOutcome.OK)
"""


def test_an_event_truncated_by_a_full_disk_is_not_recorded_and_its_client_hears_so(tmp_path: Path) -> None:
    writer = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert writer.stdout.count("no space for an event") == 2, writer.stdout
    history = read(tmp_path)
    # a: the answer is unknown to the judge. b: never sent. c: whole, though it follows what was torn
    assert [(call.key, call.outcome) for call in history.calls] == [
        ("a", ClientOutcome.INFO),
        ("c", ClientOutcome.OK),
    ]
    assert history.counts()["unanswered"] == 1


def test_a_line_is_written_at_once(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.invoke("a", [("A1", 1)], "w")
    assert os.path.getsize(journal.path) > 0


def test_rates_and_percentiles() -> None:
    calls = [Call(str(n), (("A", 1),), ClientOutcome.OK, n, n + n / 1000, "w") for n in range(1, 101)]
    rates = CallHistory(calls).rates()
    assert rates["latency_ms"] == {"p50": 50.0, "p95": 95.0, "p99": 99.0, "max": 100.0}
    assert rates["ops_per_s"] == pytest.approx(100 / 99.1, abs=0.1)
    never_begun = Call("101", (("A", 1),), ClientOutcome.INFO, -1e9, float("inf"), "w", answered=False)
    assert CallHistory([never_begun, *calls]).rates()["ops_per_s"] == rates["ops_per_s"]
    assert percentiles([]) == {"p50": None, "p95": None, "p99": None, "max": None}
