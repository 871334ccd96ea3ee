"""A form on trial: explored, replayed, and explored once more without the case's own invariant."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from lost_update_lab import Result, explore
from lost_update_lab.invariants import serializable
from lost_update_lab.scenarios.explore import REPLAY
from museum.case import KEPT, Form
from museum.opening import open_
from museum.registry import Exhibit

#: repetitions of the smallest order, all of which must come out the same
REPLAYS = 10
#: of each step of the smallest order
MOVE = ("who", "kind", "command", "reply", "line", "changes")


class NotAsTold(AssertionError):
    """A form came to something else than its case says."""


def broken(exhibit: Exhibit, form: Form) -> dict[str, Any]:
    """Find it, with as few faults as it needs. → for the JSON. Raises NotAsTold."""
    if form.needs:
        told(exhibit, form, explored(exhibit, form, {}), KEPT)
    faults = form.faults if form.needs else {}
    result = explored(exhibit, form, faults)
    told(exhibit, form, result, form.verdict)
    told(exhibit, form, again(exhibit, form, result.id), form.verdict)
    assert result.schedule
    if result.schedule.confirmed != REPLAYS or [*map(kind, result.schedule.faults)] != form.needs.split():
        raise NotAsTold(f"{exhibit.slug}, {form.name}: needs {form.needs or 'no fault'}, and it is\n{result}")
    default = explored(exhibit, form, faults, serializable).verdict
    if (default != KEPT) != form.found_by_default:
        raise NotAsTold(f"{exhibit.slug}, {form.name}: the default invariant says {default}")
    return {
        **common(form, result),
        "faults": list(result.schedule.faults),
        "sentence": result.sentence,
        "id": result.id,
        "replays": result.schedule.confirmed,
        "default": default,
        "moves": moves(result),
    }


def kind(fault: str) -> str:
    """`crash-holding of A at 7` → `crash-holding`"""
    return fault.split()[0]


def mended(exhibit: Exhibit, form: Form) -> dict[str, Any]:
    """Every order, also with the faults that the form names. → for the JSON. Raises NotAsTold."""
    result = explored(exhibit, form, form.faults)
    told(exhibit, form, result, KEPT)
    return {**common(form, result), "exhausted": result.exhausted, "bounds": dict(form.faults)}


def explored(exhibit: Exhibit, form: Form, faults: Mapping[str, int], invariant: Any = None) -> Result:
    return explore(
        form.workers,
        setup=partial(open_, exhibit),
        invariant=invariant or form.invariant or exhibit.case.invariant,
        refusals=form.refusals,
        name=f"{exhibit.slug}: {form.name}",
        django=True,
        disposable=True,
        **dict[str, Any](faults),
    )


def again(exhibit: Exhibit, form: Form, schedule: str) -> Result:
    """An order of a broken form once more, by its id."""
    with _replaying(schedule):
        return explored(exhibit, form, form.faults if form.needs else {})


@contextmanager
def _replaying(name: str) -> Iterator[None]:
    os.environ[REPLAY] = name
    try:
        yield
    finally:
        del os.environ[REPLAY]


def told(exhibit: Exhibit, form: Form, result: Result, verdict: str) -> None:
    if result.verdict != verdict:
        raise NotAsTold(f"{exhibit.slug}, {form.name}: to be {verdict}, and it is\n{result}")


def common(form: Form, result: Result) -> dict[str, Any]:
    return {
        "form": form.name,
        "verdict": result.verdict,
        "schedules": result.schedules,
        "seconds": round(result.seconds, 2),
    }


def moves(result: Result) -> list[dict[str, Any]]:
    """The smallest order, as the page tells it."""
    assert result.schedule
    return [{name: getattr(each, name) for name in MOVE} for each in result.schedule.moves]
