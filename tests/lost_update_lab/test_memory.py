"""State of a module that survives a schedule, or that workers share: put back where it is plain values; else told in
those words, and never a verdict. One that is made once, while clients warm up, is none.
"""

from __future__ import annotations

import importlib
import secrets
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import pytest
from redis.exceptions import LockError

from lost_update_lab.harness import Harness
from lost_update_lab.model.bounds import Fault
from lost_update_lab.model.errors import KEEPS_STATE, ONE_FOR_EACH_PROCESS, Elsewhere
from lost_update_lab.model.system import UNBROKEN
from lost_update_lab.runs import modules
from lost_update_lab.runs.found import SearchResult
from lost_update_lab.runs.memory import Memory, changed
from lost_update_lab.runs.plain_state import places
from lost_update_lab.search.search import Search
from tests.lost_update_lab import bank
from tests.lost_update_lab.bank import Bank, locked_by

made: dict[str, Any] = {}
tries = SimpleNamespace(of_all=0)


@pytest.fixture(autouse=True)
def anew() -> None:
    made.clear()
    tries.of_all = 0


@contextmanager
def shared_lock(bank: Bank) -> Iterator[None]:
    """redis-py's lock, made once: which worker's token is in it?"""
    if "lock" not in made:
        made["lock"] = bank.redis.lock("lock", timeout=10, sleep=1, thread_local=False)
    made["lock"].acquire()
    yield
    with suppress(LockError):
        made["lock"].release()


@contextmanager
def counted(bank: Bank) -> Iterator[None]:
    tries.of_all += 1
    while not bank.redis.set("lock", 1, nx=True, px=10_000):
        time.sleep(1)
    yield
    bank.redis.delete("lock")


@contextmanager
def with_a_script(bank: Bank) -> Iterator[None]:
    """Kept, and never changed again: no state that anybody could notice."""
    if "release" not in made:
        made["release"] = bank.redis.register_script("return redis.call('DEL', KEYS[1])")
    while not bank.redis.set("lock", 1, nx=True, px=10_000):
        time.sleep(1)
    yield
    made["release"](["lock"], client=bank.redis)


class Own:
    """Where a process keeps its token, and how often it has been asked."""

    token = ""
    asked: ClassVar[list[int]] = []


@contextmanager
def with_a_token(bank: Bank) -> Iterator[None]:
    """Right, as long as no other process writes over its token."""
    Own.asked.append(len(Own.asked))
    Own.token = f"{threading.current_thread().name} {len(Own.asked)}"
    while not bank.redis.set("lock", Own.token, nx=True):
        time.sleep(1)
    yield
    if bank.redis.get("lock") == Own.token.encode():
        bank.redis.delete("lock")


@lru_cache
def number_of_this_process() -> str:
    return secrets.token_hex(16)


class Process:
    @staticmethod
    @lru_cache
    def number() -> str:
        return str(uuid.uuid4())


@lru_cache
def script() -> str:
    """What it draws nobody sends."""
    return f"return redis.call('DEL', KEYS[{len(secrets.token_hex(16)) // 32}])"


def of_a_process(number: Callable[[], str]) -> Callable[[Bank], Any]:
    """Reentrant within its process, as its number says."""

    @contextmanager
    def lock(bank: Bank) -> Iterator[None]:
        me = number()
        while not bank.redis.set("lock", me, nx=True) and bank.redis.get("lock") != me.encode():
            time.sleep(1)
        yield
        bank.redis.eval(script(), 1, "lock")

    return lock


def searched(
    harness: Callable[..., Harness], lock: Callable[[Bank], Any], puts_back: bool = True
) -> SearchResult:
    opened = harness(locked_by(lock), faults=1, kinds=frozenset({Fault.PAUSE}))
    back = (lambda: places(modules.own_modules(__name__))) if puts_back else dict
    opened.memory = Memory(lambda: modules.state(__name__), back)
    return Search(opened).explore()


@pytest.mark.deep
@pytest.mark.parametrize("lock", [counted, with_a_token])
def test_plain_state_is_each_workers_own_and_new_in_each_schedule(
    lock: Callable[[Bank], Any], harness: Callable[..., Harness]
) -> None:
    result = searched(harness, lock)
    assert (result.cause, result.exhausted) == ("", True)
    assert result.under(None) == UNBROKEN


@pytest.mark.deep
def test_a_token_that_workers_shared_would_be_seen(harness: Callable[..., Harness]) -> None:
    """The control: it is not put back, and nobody looks."""
    result = Search(harness(locked_by(with_a_token), faults=0)).explore()
    assert result.worst == "stalled" or "told the same as before" in result.cause


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("lock", "told"),
    [
        (counted, f"it keeps state that survives a schedule: {__name__}.tries.of_all."),
        (
            shared_lock,
            "it keeps state that workers share, and that survives a schedule: "
            f"{__name__}.made['lock'].local.token.",
        ),
    ],
)
def test_state_of_a_module_is_reported_by_its_name(
    lock: Callable[[Bank], Any], told: str, harness: Callable[..., Harness]
) -> None:
    with pytest.raises(Elsewhere) as error:
        searched(harness, lock, puts_back=lock is not counted)
    assert told in str(error.value)
    assert error.value.remedy == KEEPS_STATE


@pytest.mark.parametrize(
    ("number", "name"),
    [(number_of_this_process, "number_of_this_process"), (Process.number, "Process.number")],
)
def test_a_random_number_that_is_cached_is_reported(
    number: Callable[[], str], name: str, harness: Callable[..., Harness]
) -> None:
    """Each process has one of its own. Here both workers had the first one, and a right lock was `lost`."""
    with pytest.raises(
        Elsewhere, match=rf"workers share: {__name__}.{name}\(\) is cached, and draws"
    ) as error:
        searched(harness, of_a_process(number))
    assert error.value.remedy == ONE_FOR_EACH_PROCESS


@pytest.mark.deep
def test_a_random_number_of_each_call_is_none_of_these(harness: Callable[..., Harness]) -> None:
    """What it does besides may be cached."""
    assert searched(harness, of_a_process(lambda: secrets.token_hex(16))).exhausted


@pytest.mark.deep
def test_what_is_made_once_is_no_state(harness: Callable[..., Harness]) -> None:
    assert searched(harness, with_a_script).exhausted


def test_a_closure_a_default_and_an_attribute_hold_state_too() -> None:
    def holding(tries: list[int] = []) -> None:  # noqa: B006
        tries.append(len(made))

    made["it"] = holding
    holding.depth = 1  # type: ignore[attr-defined]
    before = modules.state(__name__)
    holding()
    holding.depth = 2  # type: ignore[attr-defined]
    name = f"{__name__}.made['it']"
    assert changed(before, modules.state(__name__)) == [f"{name} argument 0", f"{name}.depth"]


def test_a_module_that_is_loaded_or_replaced_after_the_first_look_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of modules is kept between two looks."""
    for count in ("1", "2"):
        assert modules.state("late").get("late.tries") != count
        late = ModuleType("late")
        late.__file__, late.__dict__["tries"] = str(tmp_path / "late.py"), int(count)
        monkeypatch.setitem(sys.modules, "late", late)
        assert modules.state("late") == {"late.tries": count}


class Obliging:
    """A proxy, or a stand-in: it has every method that it is asked for."""

    def __getattr__(self, name: str) -> Callable[[], None]:
        return lambda: None


@pytest.mark.parametrize(
    ("text", "looked_at"),
    [
        ("", False),
        ("from lab_suite import test_others", True),
        ("from lab_suite.test_others import count", True),
        ("from lab_suite.test_others import Kept", True),
        ("from lab_suite.test_others import kept", True),
        ("from lab_suite import helper", True),  # which imports it
    ],
)
def test_a_file_of_other_tests_is_looked_at_if_the_running_one_refers_to_it(
    text: str, looked_at: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        "__init__": "",
        "test_others": "class Kept: pass\nkept = Kept()\ndef count(): pass",
        "helper": "from lab_suite.test_others import count as counted",
        "test_runs": text,
    }
    (tmp_path / "lab_suite").mkdir()
    for name, source in files.items():
        (tmp_path / "lab_suite" / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(modules, "is_own", lambda file: file.startswith(str(tmp_path)))
    others, running = "lab_suite.test_others", "lab_suite.test_runs"
    monkeypatch.setattr(modules.Tests, "collected", {others, running})
    monkeypatch.setattr(modules.Tests, "running", running)
    try:
        importlib.import_module(others)
        importlib.import_module(running)
        looked = {each.__name__ for each in modules.own_modules("")}
        assert running in looked
        assert (others in looked) is looked_at
        monkeypatch.setattr(modules.Tests, "under_test", {others})
        assert others in {each.__name__ for each in modules.own_modules("")}, "operations are there"
    finally:
        for name in [each for each in sys.modules if each.partition(".")[0] == "lab_suite"]:
            del sys.modules[name]


def test_pytest_tells_whose_test_runs() -> None:
    assert modules.Tests.running == __name__
    assert __name__ in modules.Tests.collected
    assert bank.__name__ not in modules.Tests.collected


def test_an_object_that_has_every_attribute_is_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was asked for the size of its cache, and had none."""
    monkeypatch.setitem(made, "it", Obliging())
    monkeypatch.setitem(made, "cached", lru_cache(abs))
    made["cached"](1)
    assert modules.state(__name__)[f"{__name__}.made['cached']"] == "1 cached"
