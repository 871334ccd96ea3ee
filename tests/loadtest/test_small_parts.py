"""Durations, workloads, stalls: pure functions around a trial."""

import random
from dataclasses import replace

import pytest

from ledger.reconcile import ClientOutcome
from loadtest import workloads
from loadtest.commandline.arguments import as_text, named_values
from loadtest.commandline.durations import duration, span
from loadtest.history.calls import Call
from loadtest.verdict.stall import longest_stall, stalled_after


@pytest.mark.parametrize(("text", "seconds"), [("5ms", 0.005), ("0.5s", 0.5), ("2", 2.0), ("1m", 60.0)])
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0-5ms", (0, 0.005)), ("5ms", (0, 0.005)), ("1ms-0.1s", (0.001, 0.1)), ("1-2", (1, 2))],
)
def test_spans(text: str, expected: tuple[float, float]) -> None:
    assert span(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "fast", "-5ms", "5 apples", "nan", "5ms-1ms", "1-2-3"])
def test_what_is_no_duration_says_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"write 5ms|the least comes first"):
        span(text)


def test_deposits() -> None:
    workload = workloads.find("deposits", 3, most=9)
    assert [each.account for each in workload.openings()] == ["A0001", "A0002", "A0003"]
    postings = [workload.posting(random.Random(seed)) for seed in range(50)]
    assert {account for ((account, _),) in postings} == {"A0001", "A0002", "A0003"}
    assert all(1 <= amount <= 9 for ((_, amount),) in postings)


def test_unknown_workloads_and_options_are_named() -> None:
    with pytest.raises(ValueError, match="Known: deposits"):
        workloads.find("gambling")
    with pytest.raises(ValueError, match="no option odds"):
        workloads.find("deposits", 1, odds=2)
    with pytest.raises(ValueError, match="1 to 10000"):
        workloads.find("deposits", 0)


def call(started: float, ended: float, outcome: ClientOutcome = ClientOutcome.OK) -> Call:
    return Call(f"k{started}", (("A", 1),), outcome, started, ended, "w")


def test_a_standstill_is_a_stall() -> None:
    stall = longest_stall([call(0, 1), call(1, 14), call(2, 15)])
    assert stall is not None
    assert stall.seconds == 13
    assert stall.recovered
    assert "2 were waited for" in stall.sentence


def test_a_time_without_requests_is_no_standstill() -> None:
    """A scheduler asks at 20, 40 and 60 s; each time one of the three takes a little longer than the others."""
    asked = [call(at, at + 0.010 + n / 200) for at in (20.0, 40.0, 60.0) for n in range(3)]
    assert longest_stall(asked) is None


def test_a_waiter_throughout_a_quiet_time_makes_it_a_standstill() -> None:
    stall = longest_stall([call(0, 1), call(5, 30), call(29.9, 30)])
    assert stall is not None
    assert stall.seconds == 25
    assert "2 were waited for" in stall.sentence


def test_a_standstill_that_the_last_answer_of_all_ends_has_recovered() -> None:
    stall = longest_stall([call(0, 1), call(1, 14)])
    assert stall is not None
    assert stall.recovered


def test_a_client_still_waiting_at_the_end_of_the_watch_has_not_recovered() -> None:
    waits = replace(call(1, float("inf"), ClientOutcome.INFO), answered=False)
    stall = longest_stall([call(0, 1), waits], until=21.0)
    assert stall is not None
    assert (stall.seconds, stall.recovered) == (20.0, False)


def test_a_standstill_to_the_end_did_not_recover() -> None:
    stall = longest_stall([call(0, 1), call(1, 31, ClientOutcome.INFO)])
    assert stall is not None
    assert not stall.recovered


def test_out_of_stock_is_an_answer_and_busy_is_none() -> None:
    refused = [call(0, 1), *(call(n, n + 1, ClientOutcome.FAIL) for n in range(20))]
    assert longest_stall(refused) is None
    assert longest_stall(
        [replace(each, busy=True) if each.outcome is ClientOutcome.FAIL else each for each in refused]
    )


def test_steady_progress_is_no_stall() -> None:
    assert longest_stall([call(n, n + 9.5) for n in range(30)]) is None
    assert longest_stall([]) is None


def test_a_waiter_that_looks_at_its_given_interval_has_not_stalled() -> None:
    calls = [call(0, 1), call(0.5, 16)]
    assert longest_stall(calls, stalled_after(None))
    assert longest_stall(calls, stalled_after(0.5))
    assert longest_stall(calls, stalled_after(20.0)) is None
    assert longest_stall([call(0, 1), call(0.5, 42)], stalled_after(20.0))


def test_named_values() -> None:
    values = {"reads": 0.95, "recorded": True, "most": 1}
    assert named_values(as_text(values)) == values
    assert named_values("  ") == {}
    assert named_values("name=text") == {"name": "text"}


@pytest.mark.parametrize("text", ["reads", "=1", "re ads=1", "--x=1"])
def test_what_is_no_named_value_says_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match="write NAME=VALUE"):
        named_values(text)
