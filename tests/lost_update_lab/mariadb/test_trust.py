"""`lost-update-lab trust` on a MariaDB: the bank of one account is there."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec

import pymysql
import pytest

from lost_update_lab.command.main import main
from lost_update_lab.embedded import mariadb
from lost_update_lab.under_test import servers as known
from lost_update_lab.under_test.mariadb import parameters
from tests.lost_update_lab.mariadb import locks

HERE = locks.__name__
NEEDS_AIOMYSQL = pytest.mark.skipif(not find_spec("aiomysql"), reason="install aiomysql")


@pytest.fixture(autouse=True)
def servers(address: str, scenario_urls: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setenv("DATABASE_URL", address)
    monkeypatch.setenv("REDIS_URL", scenario_urls[1])
    monkeypatch.setenv("LOST_UPDATE_LAB_DISPOSABLE", "1")


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    ("lock", "code", "hazards"),
    [
        ("named", 0, {"contention": "kept", "crash": "kept", "lost-reply": "kept"}),
        ("named_for_ever", 1, {"contention": "violated"}),
        ("get_then_set", 1, {"contention": "violated"}),
        pytest.param("named_asyncio", 0, {"contention": "kept", "crash": "kept"}, marks=NEEDS_AIOMYSQL),
        pytest.param(
            "leased_asyncio",
            1,
            {"contention": "kept", "pause": "violated"},
            marks=[pytest.mark.deep, NEEDS_AIOMYSQL],
        ),
    ],
)
def test_a_lock(
    lock: str, code: int, hazards: dict[str, str], address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trust", f"{HERE}:{lock}", "--json"]) == code
    (result,) = json.loads(capsys.readouterr().out)["results"]
    assert hazards.items() <= result["hazards"].items()
    assert result["exhausted"]
    with pymysql.connect(**parameters(address)) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW TABLES")
        assert cursor.fetchall() == ()


def test_a_lock_of_asyncio_needs_a_client_of_asyncio(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "aiomysql", None)
    assert main(["trust", f"{HERE}:named_asyncio"]) == 2
    assert "the database is a MariaDB, and aiomysql is not installed: pip install" in capsys.readouterr().err


def test_no_server_answers(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DATABASE_URL", "mysql://me@127.0.0.1:1/x_test")
    assert main(["trust", f"{HERE}:named"]) == 2
    assert "no MariaDB answers at the given address" in capsys.readouterr().err


def test_mariadb_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", "mariadb")
    monkeypatch.setattr(known, "_embedded", {})  # another test may have started one
    monkeypatch.setattr(mariadb, "PLACES", "/nowhere")
    assert main(["trust", f"{HERE}:named"]) == 2
    told = capsys.readouterr().err
    assert "MariaDB cannot be started here: " in told
    assert "mariadb-server" in told
