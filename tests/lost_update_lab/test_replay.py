"""A counterexample is shrunk, repeated ten times, and comes back from its short text."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadtest.explorer import counterexample
from loadtest.findings.gloss import Gloss
from loadtest.findings.job import Job
from lost_update_lab.harness import Harness
from lost_update_lab.harness.play import play
from lost_update_lab.model.bounds import Bounds, Fault
from lost_update_lab.model.errors import Broken
from lost_update_lab.model.system import UNBROKEN, Judgement
from lost_update_lab.model.transitions import Kind, Transition
from lost_update_lab.replay import shrink as shrinking
from lost_update_lab.replay.annotate import witnessed
from lost_update_lab.replay.prefix_tree import PrefixTree
from lost_update_lab.replay.shrink import TIMES, confirmed, ends, repeatable, shrink
from lost_update_lab.runs.found import Extent, Found, SearchResult
from lost_update_lab.schedule.schedule_id import Diverged, decode, encode, exactly, roughly
from lost_update_lab.search.poll_calibration import calibrate_polls
from lost_update_lab.search.search import Search
from tests.lost_update_lab import bank
from tests.lost_update_lab.test_search import naive, setnx, token

CRASH = Transition(Kind.CRASH, "A")


@given(st.lists(st.integers(0, 20), max_size=60))
def test_the_text_says_every_decision(choices: list[int]) -> None:
    while choices and choices[-1] == 0:
        choices.pop()
    assert decode(encode(choices)) == choices


@pytest.mark.parametrize("text", ["12", "a-b", "ä", "3 a"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no schedule"):
        decode(text)


@pytest.mark.deep
@pytest.mark.parametrize(("lock", "faults", "switches"), [(naive, 0, 3), (token, 1, 2)])
def test_shrunk_confirmed_replayed(
    harness: Callable[..., Harness], lock: object, faults: int, switches: int
) -> None:
    played = harness(bank.locked_by(lock), faults=faults)
    search = Search(played)
    found = search.explore().smallest("lost")
    assert found
    small = shrink(PrefixTree(played, search.watched), found)
    assert small.size <= found.size
    assert small.switches == switches
    assert confirmed(played, search.watched, small) == TIMES
    again, _ = play(played, search.watched, exactly(decode(encode(small.choices))))
    assert (again.word, again.transitions) == ("lost", small.transitions)
    assert [step.command for step in again.steps] == [step.command for step in small.steps]


@contextmanager
def timed(own: bank.Bank) -> Iterator[None]:
    """redis-py's lock, with a lease."""
    with own.redis.lock("lock", timeout=5):
        yield


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("fault", [Fault.PAUSE, Fault.CLOCK_JUMP, Fault.FAILOVER])
def test_who_is_interrupted_is_interrupted_once(harness: Callable[..., Harness], fault: Fault) -> None:
    """No move of a single block led there: the other one's last step stood behind the end of the pause."""
    played = harness(bank.locked_by(timed), faults=1, kinds=frozenset({fault}))
    search = Search(played)
    found = search.explore().smallest("lost", fault)
    assert found
    before = played.runs
    small = shrink(PrefixTree(played, search.watched), found)
    assert (small.word, small.switches) == ("lost", 2)
    assert Extent(small.transitions).turns == 2
    assert len(small.transitions) <= 13
    assert played.runs == before


@pytest.mark.deep
@pytest.mark.parametrize(("budget", "shrinks"), [(None, True), (60.0, False)])
def test_an_id_is_the_same_however_slow_the_machine_is(
    harness: Callable[..., Harness], monkeypatch: pytest.MonkeyPatch, budget: float | None, shrinks: bool
) -> None:
    """On a busy machine the time for shrinking was over, and the id was another one. Now only a budget ends it."""
    hours = itertools.count(10**9, 3600)  # one of them passes between any two looks at the clock
    ids = []
    for clock in (shrinking._now, lambda: float(next(hours))):
        played = harness(bank.locked_by(setnx), faults=1, budget=budget)
        waiters, late = calibrate_polls(played), roughly([*[Transition(Kind.STEP, "A")] * 2, CRASH])
        found, _ = play(played, waiters, late)
        monkeypatch.setattr(shrinking, "_now", clock)
        small, times = repeatable(played, waiters, found, ends(SearchResult(played.bounds, ())))
        assert times == TIMES
        ids.append(encode(small.choices))
    assert (ids[0] == ids[1]) == shrinks


@pytest.mark.deep
def test_a_fault_comes_as_early_as_it_can(harness: Callable[..., Harness]) -> None:
    """A search skips the crash right after SETNX: it leaves the same behind as a crash after the read, seen before."""
    played = harness(bank.locked_by(setnx), faults=1)
    waiters = calibrate_polls(played)
    found, _ = play(played, waiters, roughly([*[Transition(Kind.STEP, "A")] * 2, CRASH]))
    assert (found.word, [str(each) for each in found.transitions[:3]]) == (
        "stalled",
        ["step A", "step A", "crash A"],
    )
    small = shrink(PrefixTree(played, waiters), found)
    assert small.word == "stalled"
    assert [str(each) for each in small.transitions[:3]] == ["step A", "crash A", "step B"]


@pytest.mark.parametrize(("comes_again", "others"), [(True, TIMES - 1), (False, TIMES)])
def test_a_run_that_shows_more_is_one_of_the_repetitions(
    harness: Callable[..., Harness], monkeypatch: pytest.MonkeyPatch, comes_again: bool, others: int
) -> None:
    played = harness(bank.no_lock)
    search = Search(played)
    found = search.explore().smallest("lost")
    assert found
    runs = []
    once = shrinking.play

    def counted(*args: Any, **keywords: Any) -> Any:
        runs.append(args)
        return once(*args, **keywords)

    def witness(small: Found) -> Found:
        runs.clear()  # those that shrunk it
        return witnessed(played, search.calibrated, small) if comes_again else small

    monkeypatch.setattr(shrinking, "play", counted)
    small, times = repeatable(played, search.calibrated, found, witness=witness)
    assert (times, len(runs), bool(small.states)) == (TIMES, others, comes_again)


def test_a_worker_is_fed_on_the_way_to_a_smaller_schedule(harness: Callable[..., Harness]) -> None:
    """A run on the servers would tell the same, and takes longer."""
    found = fed_and_executed(harness, fed=True)
    assert (found.fed, found.executed) == (1, 0)


@pytest.mark.deep
def test_fed_or_executed_the_smaller_schedule_is_the_same(harness: Callable[..., Harness]) -> None:
    fed, executed = (fed_and_executed(harness, each) for each in (True, False))
    assert (executed.fed, executed.executed) == (0, 2)
    assert fed.name == executed.name


class Shrunk(NamedTuple):
    name: str
    fed: int
    executed: int


@contextmanager
def renewed(own: bank.Bank) -> Iterator[None]:
    while not own.redis.set("lock", "taken", nx=True, px=3000):
        time.sleep(1)
    stop = threading.Event()

    def renew() -> None:
        while not stop.wait(1):
            own.redis.pexpire("lock", 3000)

    renewal = threading.Thread(target=renew)
    renewal.start()
    yield
    stop.set()
    renewal.join()
    own.redis.delete("lock")


def fed_and_executed(harness: Callable[..., Harness], fed: bool) -> Shrunk:
    """How a schedule shrinks in which a holder dies and its renewal lives on, and which breaks nothing."""
    played = harness(bank.locked_by(renewed), faults=1, kinds=frozenset({Fault.RENEWAL_LIVES}), fed=fed)
    search = Search(played)
    search.explore()
    runs, told = played.runs, played.feeding.runs
    harmless = search.result.found[UNBROKEN, (Fault.RENEWAL_LIVES,)]
    small = shrink(PrefixTree(played, search.calibrated), harmless)
    return Shrunk(encode(small.choices), played.feeding.runs - told, played.runs - runs)


@pytest.mark.parametrize("part", ["again", "shrink", "confirmed"])
def test_a_loss_stays_a_loss_when_its_telling_fails(
    harness: Callable[..., Harness], monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """It has no id then, and says how often it came out the same."""
    played = harness(bank.no_lock)
    search = Search(played)
    search.explore()

    def fails(*_: object) -> None:
        raise Broken("it took another way", "none: the test has raised it")

    monkeypatch.setattr(shrinking, part, fails)
    (shown,) = counterexample.counterexamples(Job(strategy="no-lock"), played, search, Gloss("x")).values()
    assert (shown["verdict"], shown["id"], shown["confirmed"]) == ("lost", "", 0)


def test_what_two_faults_break_together_is_worth_showing(harness: Callable[..., Harness]) -> None:
    search = Search(harness(bank.no_lock))
    search.explore()
    loss = search.result.smallest("lost")
    assert loss
    both = replace(loss, faults=(Fault.CRASH, Fault.PAUSE))
    result = SearchResult(Bounds(faults=2), ("lost", "stalled"))
    result.add(replace(both, judgement=Judgement(UNBROKEN), faults=()))
    result.add(both)
    assert result.combined() == both
    result.add(replace(both, faults=(Fault.CRASH,)))
    assert result.combined() is None


def test_a_schedule_of_something_else_does_not_pass_for_this_one(harness: Callable[..., Harness]) -> None:
    played = harness(bank.no_lock)
    with pytest.raises(Diverged):
        play(played, {}, exactly([0, 25]))
