"""The list of cases, filled by the files cases_*.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.contract.arena import Arena

Case = Callable[[Arena, Any], None]

#: slug → case. The slugs are the keys of a lock's `fails` and `not_applicable`.
CASES: dict[str, Case] = {}


def case(slug: str) -> Callable[[Case], Case]:
    def enter(function: Case) -> Case:
        assert slug not in CASES, slug
        CASES[slug] = function
        return function

    return enter
