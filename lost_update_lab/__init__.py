"""Puts code that guards money on trial: every order of its commands, with faults, on real servers.

from lost_update_lab import explore, worker

explore([worker("Ann", redeem, "XMAS"), worker("Bob", redeem, "XMAS")], setup=one_voucher)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lost_update_lab.scenarios.comparisons import retrying
    from lost_update_lab.scenarios.explore import explore
    from lost_update_lab.scenarios.result import Result
    from lost_update_lab.under_test.scenario import Mistake, Worker, worker

__all__ = [
    "Mistake",
    "Result",
    "Worker",
    "explore",
    "retrying",
    "worker",
]

_WHERE = {
    "explore": "scenarios.explore",
    "retrying": "scenarios.comparisons",
    "Result": "scenarios.result",
    "Mistake": "under_test.scenario",
    "Worker": "under_test.scenario",
    "worker": "under_test.scenario",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: the engine's own modules need none of them."""
    if name in _WHERE:
        return getattr(import_module(f"lost_update_lab.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
