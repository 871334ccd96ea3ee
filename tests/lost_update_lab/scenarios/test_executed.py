"""Which of the user's modules a run can have changed: a look at state that survives leaves out all others."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lost_update_lab import Result
from lost_update_lab.runs import modules
from lost_update_lab.runs.executed import Executed, noting

Trial = Callable[..., Result]
CACHE = """
from collections import Counter
LEFT, SOLD = 1, Counter()
def take(): SOLD["all"] += 1
class Box:
    def take(self): SOLD["all"] += 1
"""
#: how the operation comes to `shop.cache`: what stands at the top of its module, and in the operation
WAYS = {
    "its code": ("from shop.cache import take", "take()"),
    "an object's method": ("", "box.take()"),
    "an object's class": ("from shop.cache import Box", "Box.taken = 1"),
    "the module": ("from shop import cache", "cache.LEFT = 0"),
    "the package": ("import shop", "shop.cache.LEFT = 0"),
    "a package under another name": ("import shop as market", "market.cache.LEFT = 0"),
    "an import": ("", "import shop.cache; shop.cache.LEFT = 0"),
    "an import of the module": ("", "from shop import cache; cache.LEFT = 0"),
    "a relative import": ("", "from . import cache; cache.LEFT = 0"),
    "a relative import of its list": ("", "from .cache import SOLD; SOLD['all'] += 1"),
    "a name": ("from importlib import import_module", "import_module('shop.cache').LEFT = 0"),
    "a name of what is in it": ("from unittest import mock", "mock.patch('shop.cache.LEFT', 0).start()"),
    "another module that has it": ("from shop import stock", "stock.cache.LEFT = 0"),
}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], Any]]:
    """`shop(top, body)`: the module `shop.service` with `sell(box)`."""

    def made(top: str, body: str) -> Any:
        files = {
            "__init__": "",
            "cache": CACHE,
            "stock": "from shop import cache",
            "other": "SEEN = []",
            "service": f"{top}\ndef sell(box=None):\n    {body}",
        }
        (tmp_path / "shop").mkdir()
        for name, source in files.items():
            (tmp_path / "shop" / f"{name}.py").write_text(source)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(modules, "is_own", lambda file: file.startswith(str(tmp_path)))
        return [importlib.import_module(f"shop.{name}") for name in ("cache", "stock", "other", "service")][
            -1
        ]

    yield made
    for name in [each for each in sys.modules if each.partition(".")[0] == "shop"]:
        del sys.modules[name]


def executed_by(operation: Callable[[], Any], before: Callable[[], None] = lambda: None) -> set[str]:
    """In a thread of a worker."""
    executed = Executed()

    def work() -> None:
        before()
        with noting():
            operation()

    with executed.noted():
        one = threading.Thread(target=work)
        one.start()
        one.join()
    return {each.__name__ for each in executed.modules()}


@pytest.mark.parametrize("way", WAYS)
def test_a_module_that_the_operation_may_change_is_looked_at(
    shop: Callable[[str, str], Any], way: str
) -> None:
    service = shop(*WAYS[way])
    box = sys.modules["shop.cache"].Box()
    found = executed_by(lambda: service.sell(box))
    assert {"shop.service", "shop.cache"} <= found
    assert "shop.other" not in found


def test_while_others_trace_the_calls_all_are_looked_at(shop: Callable[[str, str], Any]) -> None:
    """A debugger, or coverage."""
    service = shop("", "pass")
    assert "shop.other" not in executed_by(service.sell)
    assert "shop.other" in executed_by(service.sell, lambda: sys.settrace(lambda *of: None))


TAKES = {
    "a thread": ("import threading", "one = threading.Thread(target=box.take); one.start(); one.join()"),
    "a later run": (
        "from collections import Counter\nRUNS = Counter()",
        "RUNS['all'] += 1; box.take() if RUNS['all'] > 2 else None",
    ),
    "a call": ("", "box.take()"),
    "a coroutine": ("import asyncio\nasync def takes(box): box.take()", "asyncio.run(takes(box))"),
}


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("way", TAKES)
def test_what_survives_there_is_told(shop: Callable[[str, str], Any], trial: Trial, way: str) -> None:
    """`SOLD` holds no plain values, which would be put back."""
    service = shop(*TAKES[way])
    cache = sys.modules["shop.cache"]
    result = trial([partial(service.sell, cache.Box())] * 2, control=False)
    assert "shop.cache." in str(result.notes)
