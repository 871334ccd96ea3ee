"""`python -m museum --replay 01-voucher/1/v/3a`: the smallest order of a broken form again, by its id."""

from __future__ import annotations

from lost_update_lab import Result
from museum import registry, trial


def named(case: str, number: int, schedule: str) -> str:
    """`number`: of the broken form, from 1. `schedule`: as the explorer names it."""
    return f"{case}/{number}/{schedule}"


def replayed(name: str) -> Result:
    """In a process that has begun as a lane. Raises LookupError: there is no such form."""
    case, number, schedule = [*name.split("/", 2), "", ""][:3]
    exhibit = registry.load().get(case)
    if exhibit is None or not number.isdigit() or not 1 <= int(number) <= len(exhibit.case.broken):
        raise LookupError(
            f"{name!r} names no order: write case/form/id, as 01-voucher/1/v/3a on docs/museum.md"
        )
    form = exhibit.case.broken[int(number) - 1]
    return trial.again(exhibit, form, schedule)
