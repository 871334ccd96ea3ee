"""The must-fail controls: a case that says something wrong of itself is found out."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import pytest

from museum import registry, trial
from museum.case import KEPT, STALLED
from museum.trial import NotAsTold

SLUG = "01-voucher"


def broken(**changes: object) -> None:
    exhibit = registry.load()[SLUG]
    trial.broken(exhibit, replace(exhibit.case.broken[0], **changes))


def taken_for_mended() -> None:
    exhibit = registry.load()[SLUG]
    trial.mended(exhibit, exhibit.case.broken[0])


def taken_for_broken() -> None:
    exhibit = registry.load()[SLUG]
    trial.broken(exhibit, replace(exhibit.case.mended[0], verdict="violated"))


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    "wrong",
    [
        {"verdict": STALLED},
        {"verdict": KEPT},
        {"needs": "crash", "faults": {"crashes": 1}},
        {"found_by_default": False},
    ],
    ids=str,
)
def test_what_is_wrong_about_a_broken_form_is_seen(
    a_lane: ProcessPoolExecutor, wrong: dict[str, object]
) -> None:
    with pytest.raises(NotAsTold, match=SLUG):
        a_lane.submit(broken, **wrong).result()


@pytest.mark.deep
def test_forms_that_are_exchanged_are_seen(a_lane: ProcessPoolExecutor) -> None:
    for exchanged in (taken_for_mended, taken_for_broken):
        with pytest.raises(NotAsTold, match=SLUG):
            a_lane.submit(exchanged).result()
