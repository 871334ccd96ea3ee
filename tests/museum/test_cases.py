"""Each broken form is found, repeated and found by the default invariant; each mended one is exhausted.

The trial itself raises where a case has another verdict: test_trial.py shows that.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

import pytest

from museum import registry, runner

#: in `make test`; the others are searched by `make test-deep`
FAST = ("08-stale-save",)


def holds(a_lane: ProcessPoolExecutor, slug: str) -> None:
    result = a_lane.submit(runner.one, slug, 0).result()
    assert result["broken"]
    assert [form["replays"] for form in result["broken"]] == [10] * len(result["broken"])
    assert all(form["exhausted"] for form in result["mended"])
    assert result["mended"]


@pytest.mark.parametrize("slug", FAST)
def test_a_case_has_the_verdict_that_it_states(a_lane: ProcessPoolExecutor, slug: str) -> None:
    holds(a_lane, slug)


@pytest.mark.deep(short=False)
@pytest.mark.parametrize("slug", [slug for slug in registry.modules() if slug not in FAST])
def test_every_other_case_too(a_lane: ProcessPoolExecutor, slug: str) -> None:
    holds(a_lane, slug)
