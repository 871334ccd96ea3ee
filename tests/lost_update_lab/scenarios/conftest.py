"""Scenarios on the explorer's own servers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from lost_update_lab import Result, explore
from tests.lost_update_lab import BUDGET
from tests.test_house import ROOT


@pytest.fixture
def trial(scenario_urls: tuple[str, str]) -> Callable[..., Result]:
    """`trial([...], setup=…)`: explore() on them."""
    database, redis = scenario_urls
    return partial(explore, database=database, redis=redis, disposable=True, budget=BUDGET)


@pytest.fixture
def project(scenario_urls: tuple[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`project("django_async.py", **settings)`: a Django project of its own, run on them. `settings` are those of its
    database."""

    def run(name: str, **settings: Any) -> subprocess.CompletedProcess[str]:
        given = conninfo_to_dict(scenario_urls[0])
        where = {"ENGINE": "django.db.backends.postgresql", "NAME": given["dbname"], **settings}
        of = {"WALLET_DATABASE": json.dumps({**where, "USER": given["user"], "HOST": given["host"]})}
        return subprocess.run(
            [sys.executable, str(Path(__file__).with_name(name))],
            env={**os.environ, **of, "REDIS_URL": scenario_urls[1], "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )

    return run
