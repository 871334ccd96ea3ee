"""With LAB_NO_SKIPS=1 a test that is skipped has failed. CI sets it, because everything optional is installed there.

Loaded by `-p tests.skips` (pyproject.toml). A test may still be skipped for what a machine cannot do: become another
user, or pin a process to a CPU.
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
