"""Django's asynchronous ORM (aget, asave, aupdate), in a project of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict

from tests.test_house import ROOT

PROJECT = Path(__file__).with_name("django_async.py")


def test_the_asynchronous_orm(scenario_urls: tuple[str, str]) -> None:
    given = conninfo_to_dict(scenario_urls[0])
    where = {"ENGINE": "django.db.backends.postgresql", "NAME": given["dbname"]}
    of = {"WALLET_DATABASE": json.dumps({**where, "USER": given["user"], "HOST": given["host"]})}
    done = subprocess.run(
        [sys.executable, str(PROJECT)],
        env={**os.environ, **of, "REDIS_URL": scenario_urls[1], "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    told = done.stdout.splitlines()
    assert told == ["withdraw violated True", "withdraw_in_place kept True"], done.stderr
