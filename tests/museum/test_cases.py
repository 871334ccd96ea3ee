"""Each broken form is found, repeated and found by the default invariant; each mended one is exhausted.

The trial itself raises where a case has another verdict: test_trial.py shows that.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

import pytest

from museum import registry, runner

#: what CI searches of them
SHORTEST = "08-stale-save"
SLUGS = [
    pytest.param(slug, marks=pytest.mark.deep(short=slug == SHORTEST), id=slug) for slug in registry.modules()
]


@pytest.mark.parametrize("slug", SLUGS)
def test_a_case_has_the_verdict_that_it_states(a_lane: ProcessPoolExecutor, slug: str) -> None:
    result = a_lane.submit(runner.one, slug, 0).result()
    assert result["broken"]
    assert [form["replays"] for form in result["broken"]] == [10] * len(result["broken"])
    assert all(form["exhausted"] for form in result["mended"])
    assert result["mended"]
