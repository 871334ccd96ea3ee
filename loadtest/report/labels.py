"""The name of a result in tables and charts: its strategy, and whatever distinguishes it from the other results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def labels(results: Sequence[Any], by: Sequence[str] = ("way", "store", "workload")) -> list[str]:
    """Return a name for each result. It contains the way to import, the store and the workload (`by`) if the results
    have several. A control that ran on two stores must not look like one that ran twice."""
    names = ["strategy"]
    for name in by:
        if len({result.get(name) for result in results} - {None}) > (name != "way"):
            names.append(name)
    return [_label(result, names) for result in results]


def _label(result: Any, names: Sequence[str]) -> str:
    words = {"strategy": "{}", "way": ", {}", "store": " on {}", "workload": ", {}"}
    return "".join(words[name].format(result[name]) for name in names if result.get(name))
