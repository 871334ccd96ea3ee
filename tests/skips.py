"""With LAB_NO_SKIPS=1, as in CI, where all that is optional is installed: a test that skips has failed.

Loaded by `-p tests.skips` (pyproject.toml). What only this machine cannot do (no other user to become, no CPU to pin a
process to) may still be skipped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator

import pytest

MAY = re.compile("only root|does not work here|cannot pin")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    reason = str(report.longrepr)
    if report.skipped and os.environ.get("LAB_NO_SKIPS") and not MAY.search(reason):
        report.outcome, report.longrepr = "failed", f"nothing may be skipped here (LAB_NO_SKIPS): {reason}"
    return report
