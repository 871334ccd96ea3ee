"""`bench locks`: it runs, every figure is there, and what it checks can fail."""

import json
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from redis import Redis
from rich.console import Console

from loadtest.bench import children, neighbours, output
from loadtest.bench.children import ChildFailed, Foreign, Forked
from loadtest.bench.goals import at_least
from loadtest.bench.locks import QUICK, LocksPlan, contended, contenders, peer_python, run, uncontended
from loadtest.bench.locks.contended import counted
from loadtest.bench.locks.contenders import CONTENDED, FOREIGN, UNCONTENDED, Contender
from loadtest.bench.locks.goals import GOALS, judge
from loadtest.bench.locks.pinning import can_pin
from loadtest.bench.locks.servers import servers
from loadtest.bench.locks.table import tables
from loadtest.bench.measured import Measured
from loadtest.bench.parts import PARTS
from lost_update_lab.embedded.reaper import lives

TINY = LocksPlan(
    parts=QUICK.parts,
    rounds=1,
    uncontended=0.01,
    contended_rounds=1,
    contended=0.05,
    unpinned_rounds=1,
    waiters=(2,),
    waiting=0.05,
    turns=10,
    install=False,
)


def measure(plan):
    found = Measured()
    run(plan, found)
    return found


@pytest.fixture(scope="module")
def measured():
    return measure(TINY)


@pytest.mark.deep
def test_every_contender_has_its_row(measured):
    rows = measured.results
    assert {row["pinned"] for row in rows} == {can_pin()}
    alone = {row["strategy"]: row for row in rows if row["measure"] == "uncontended"}
    assert set(alone) == {each.name for each in UNCONTENDED} | set(FOREIGN)
    for name in FOREIGN:  # shown with the reason, or measured where it is installed
        assert alone[name].get("reason") or alone[name]["per_s"]["median"] > 0
    contended = {row["strategy"]: row for row in rows if row["measure"] == "contended"}
    assert set(contended) == set(CONTENDED)
    assert all(row["right"] for row in contended.values())
    # how many: tests/locks/test_fair_lock_queue.py. On a busy machine an impatient waiter asks again
    assert contended["fair-lock"]["commands"]["median"] > 0


@pytest.mark.deep
@pytest.mark.skipif(not can_pin(), reason="this system cannot pin processes to a CPU")
def test_parts_can_be_chosen():
    found = measure(replace(TINY, parts=frozenset({"limit", "unpinned"})))
    assert {(row["measure"], row["pinned"]) for row in found.results} == {
        ("limit", True),
        ("limit", False),
    }
    goals = list(judge(found.results))
    assert [goal["measured"] for goal in goals] == [None] * len(GOALS)
    everything = replace(TINY, parts=frozenset({"unpinned"}))
    assert everything.has("uncontended")
    assert everything.has("waiters")
    drawn = Console(record=True, width=160)
    for table in PARTS["locks"].all_tables(found, goals):
        drawn.print(table)
    assert drawn.export_text().count("not measured") == len(GOALS) + 4  # and each row of the limit


@pytest.mark.deep
def test_each_goal_is_judged(measured):
    goals = list(judge(measured.results))
    assert [goal["name"] for goal in goals] == [goal.name for goal in GOALS]
    for goal in goals:
        assert set(goal) >= {"name", "goal", "measured", "met"}
    assert len(list(tables(measured.results))) >= 3


def test_a_goal_whose_figures_are_missing_is_not_met():
    judged = list(judge([]))
    assert not any(goal["met"] for goal in judged)
    assert all("did not run" in goal["reason"] for goal in judged)


@pytest.mark.deep
def test_a_goal_can_be_missed(measured):
    slow = json.loads(json.dumps(measured.results))
    for row in slow:
        if row["strategy"] == "redis-py" and row["measure"] == "uncontended":
            row["ratio"] = {"min": 1.8, "median": 1.9, "max": 1.99}
    missed = {goal["name"]: goal["state"] for goal in judge(slow)}
    assert missed["uncontended ÷ redis-py's Lock"] == "missed"


@pytest.mark.deep
def test_without_pinning_a_goal_says_so(measured):
    """A server that runs is not reported as missing."""
    free = [{**row, "pinned": False} for row in measured.results]
    assert all("was not pinned to one CPU" in goal["reason"] for goal in judge(free))


@pytest.mark.deep
def test_a_lock_that_does_not_lock_is_found_out(monkeypatch):
    nothing = Contender("nothing", "", lambda _: (lambda: None, lambda: None))
    monkeypatch.setattr(contended, "contender", lambda _: nothing)
    with servers() as ours:
        found = contended.measure("nothing", ours, processes=4, seconds=0.3)
    assert not found["right"]
    assert found["commands"] == 0


def test_commands_are_counted_by_the_server(redis_client, redis_url):
    with Redis.from_url(redis_url) as other:
        other.ping()
        with counted(redis_client) as count:
            other.get("x")
            with other.pipeline(transaction=True) as pipe:
                pipe.get("y").get("z").execute()
            other.eval("redis.call('GET', 'a') return redis.call('GET', 'b')", 0)
    assert count.commands == 1 + 4 + 1  # GET; MULTI, GET, GET, EXEC; a script is one, whatever it does


def test_a_failure_in_a_contenders_process_is_reported():
    child = Forked(lambda: lambda _: 1 / 0)
    child.tell(1)
    with pytest.raises(ChildFailed, match="ZeroDivisionError"):
        child.answer()
    child.close()


def test_what_a_child_says_before_it_ends_is_its_answer():
    child = Forked(lambda: 1 / 0)
    child._process.join(20)
    child.tell(1)
    with pytest.raises(ChildFailed, match="ZeroDivisionError"):
        child.answer()
    child.close()


def fails(_):
    raise OSError("no room")


@pytest.mark.deep
@pytest.mark.parametrize("who", ["fair-lock", "token"])
def test_a_contender_that_fails_has_a_reason_and_ends_no_run(who, monkeypatch):
    """Also when it is the one that all others are compared with."""
    broken = [replace(each, make=fails) if each.name == who else each for each in UNCONTENDED]
    few = "fair-lock", "token", "redis-py"
    monkeypatch.setattr(contenders, "UNCONTENDED", broken)
    monkeypatch.setattr(uncontended, "UNCONTENDED", [each for each in broken if each.name in few])
    monkeypatch.setattr(contended, "CONTENDED", few)
    found = measure(replace(TINY, parts=frozenset({"uncontended", "contended", "waiters"})))
    absent = [row for row in found.results if row["strategy"] == who]
    assert {row["measure"] for row in absent} >= {"uncontended", "contended", "waiters"}
    assert all((row["verdict"], row["reason"]) == ("inconclusive", "OSError: no room") for row in absent)
    others = [row for row in found.results if row["strategy"] == "redis-py"]
    assert others
    assert all(("ratio" in row) == (who != "fair-lock") for row in others)
    goals = {goal["name"]: goal for goal in judge(found.results)}
    against = goals["uncontended ÷ redis-py's Lock"]
    assert (against["measured"] is None) == (who == "fair-lock")
    assert who != "fair-lock" or "no room" in against["reason"]
    drawn = Console(record=True, width=160)
    for table in tables(found.results):
        drawn.print(table)
    assert "no room" in drawn.export_text()


@pytest.mark.deep
def test_a_third_party_lock_is_measured_beside_the_others():
    spec = "tests.loadtest.third_party:right"
    found = measure(replace(TINY, parts=frozenset({"uncontended", "contended"}), yours=(spec,)))
    its = {row["measure"]: row for row in found.results if row["strategy"] == spec}
    assert set(its) == {"uncontended", "contended"}
    assert its["contended"]["right"]
    assert its["uncontended"]["ratio"]["median"] > 0


def test_a_peer_that_cannot_be_installed_is_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("LAB_DIR", str(tmp_path))
    with pytest.raises(peer_python.NotInstalled, match="--quick"):
        peer_python.python_with("pottery", make=False)
    monkeypatch.setattr(peer_python, "_run", _fails)
    with pytest.raises(peer_python.NotInstalled, match="no network"):
        peer_python.python_with("pottery")


def _fails(_):
    raise peer_python.NotInstalled("no network")


def test_a_foreign_process_that_ends_is_reported(tmp_path):
    script = tmp_path / "ends.py"
    script.write_text("raise SystemExit(3)\n")
    child = Foreign(Path(sys.executable), script)
    with pytest.raises(ChildFailed, match="code 3"):
        child.answer()
    child.close()


def test_children_end_with_their_parent_however_it_ends():
    script = """
import os, time
from loadtest.bench.children import crew
work = lambda: lambda _: os.getpid()
with crew(work, work, work) as children:
    for child in children:
        child.tell(1)
    print(*[child.answer() for child in children], flush=True)
    time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    children_of_it = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
    assert len(children_of_it) == 3
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 20
    while any(map(lives, children_of_it)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_time_of_the_work_itself_is_no_time_without_an_answer(monkeypatch):
    monkeypatch.setattr(children, "ANSWER", 0.1)
    child = Forked(lambda: time.sleep)
    child.tell(0.5)
    assert child.answer(20) is None
    child.tell(20)
    with pytest.raises(ChildFailed, match="no answer"):
        child.answer(0.1)
    child.close()


def test_a_foreign_process_that_hangs_is_killed_and_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(children, "ANSWER", 0.1)
    script = tmp_path / "hangs.py"
    script.write_text("import time\ntime.sleep(60)\n")
    child = Foreign(Path(sys.executable), script)
    with pytest.raises(ChildFailed, match="no answer"):
        child.answer()
    assert child._process.wait(20) == -signal.SIGKILL
    child.close()


@pytest.mark.deep
def test_other_programs_are_told_apart_from_our_own():
    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        with neighbours.neighbours() as found:
            used = time.process_time()
            while time.process_time() - used < 0.1:
                pass
            assert neighbours._ours() > 0.1
            time.sleep(0.3)
        assert "busy before the run" in str(neighbours.before())
    finally:
        spinning.kill()
        spinning.wait()
    assert "busy" in str(found.warning())


def test_a_quiet_machine_is_no_warning():
    found = neighbours.Neighbours()
    assert found.warning() is None
    found.stolen = 2 * neighbours.STOLEN
    assert "took 6% of the time" in str(found.warning())


def test_the_warning_stands_below_the_goals():
    drawn = Console(record=True, width=160)
    goal = at_least("fast", 1, 2.0)
    drawn.print(*PARTS["locks"].all_tables(Measured(warning="others used it"), [goal]))
    assert "others used it" in drawn.export_text()


def test_parts_of_the_bench_share_a_file(tmp_path):
    file = tmp_path / "bench.json"
    part, goals = Measured([{"strategy": "a"}], ["n"], warning="others used it"), [{"name": "g"}]
    output.write("locks", part, goals, file)
    output.write("strategies", part, goals, file)
    whole = output.write("locks", Measured(notes=["n"], environment={"cores": 2}), goals, file)
    assert [row["bench"] for row in whole["results"]] == ["strategies"]
    assert [row["bench"] for row in whole["goals"]] == ["strategies", "locks"]
    assert whole["notes"] == {"locks": ["n"], "strategies": ["n", "others used it"]}
    assert json.loads(file.read_text()) == whole
