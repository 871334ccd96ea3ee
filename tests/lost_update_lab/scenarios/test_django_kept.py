"""What a Django process keeps is each worker's own: the pool of its database, a cache of django-redis, ContentTypes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.test_house import ROOT

PROJECT = Path(__file__).with_name("django_kept.py")


@pytest.mark.parametrize("options", [{}, {"pool": True}, {"pool": {"min_size": 1, "max_size": 1}}])
def test_what_a_process_keeps(scenario_urls: tuple[str, str], options: dict[str, object]) -> None:
    given = conninfo_to_dict(scenario_urls[0])
    where = {"ENGINE": "django.db.backends.postgresql", "NAME": given["dbname"], "OPTIONS": options}
    of = {"WALLET_DATABASE": json.dumps({**where, "USER": given["user"], "HOST": given["host"]})}
    done = subprocess.run(
        [sys.executable, str(PROJECT)],
        env={**os.environ, **of, "REDIS_URL": scenario_urls[1], "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    told = [line.strip() for line in done.stdout.splitlines()]
    assert told == [
        "withdraw violated True",
        "withdraw_locked kept True",
        "count violated True",
        "count_at_once kept True",
        "of_its_type kept True",
    ], done.stderr
    assert "Traceback" not in done.stderr
