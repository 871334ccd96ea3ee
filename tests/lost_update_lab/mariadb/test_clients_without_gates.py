"""mysqlclient, asyncmy and their like have no gate: that is said, with what to use instead, and never `kept`.

None of them is installed here. mysqlclient is Python around libmariadb, so that library itself is called; a client of
asyncio is one that waits for a socket.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import pytest

from lost_update_lab import Mistake
from lost_update_lab.servers.mariadb.bypass import made
from lost_update_lab.under_test.mariadb import parameters
from tests.lost_update_lab.mariadb import shop
from tests.lost_update_lab.mariadb.conftest import Trial

LIBRARY = find_library("mariadb")
OF_ASYNCIO = """
import asyncio

async def connect(path):
    reader, writer = await asyncio.open_unix_connection(path)
    await reader.read(4)  # the server's greeting
    writer.close()
"""


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Imports a module of `tmp_path`, and forgets it. PyMySQL stands in for mysqlclient where Django uses it."""
    for each in [name for name in sys.modules if name.partition(".")[0] == "MySQLdb"]:
        monkeypatch.delitem(sys.modules, each)
    before = set(sys.modules)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module
    for each in set(sys.modules) - before:
        if str(getattr(sys.modules[each], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[each]


def by_library(text: str) -> None:
    """As mysqlclient does it."""
    given, library = parameters(os.environ["DATABASE_URL"]), ctypes.CDLL(LIBRARY)
    library.mysql_init.restype = ctypes.c_void_p
    library.mysql_real_connect.restype = ctypes.c_void_p
    link = ctypes.c_void_p(library.mysql_init(None))
    user, name, path = (given[each].encode() for each in ("user", "database", "unix_socket"))
    assert library.mysql_real_connect(link, None, user, None, name, 0, path, ctypes.c_ulong(0))
    assert library.mysql_query(link, text.encode()) == 0
    library.mysql_close(link)


def redeem(code: str, customer: int, *, sql: Any) -> str:
    by_library("UPDATE account SET balance = balance - 1")
    return shop.redeem_locked(code, customer, sql=sql)


def only_by_library() -> None:
    by_library("UPDATE account SET balance = balance - 1")


@pytest.mark.deep
@pytest.mark.skipif(not LIBRARY, reason="install libmariadb3")
@pytest.mark.parametrize("worker", [(redeem, "XMAS", 1), (only_by_library,)])
def test_as_mysqlclient_does(
    trial: Trial, worker: Any, tmp_path: Path, imported: Callable[[str], Any]
) -> None:
    (tmp_path / "MySQLdb").mkdir()
    for name in ("__init__.py", "_mysql.py"):
        (tmp_path / "MySQLdb" / name).touch()
    imported("MySQLdb._mysql")
    made().extend(range(1, 1000))  # PyMySQL's on another server, which counts its connections, too
    result = trial([worker, worker])
    assert (result.verdict, result.schedule) == ("inconclusive", None)
    assert "talked to MariaDB past the gates" in result.cause
    assert result.remedy.startswith("mysqlclient has no gate: use PyMySQL (Django: `import pymysql; ")


def test_as_asyncmy_does(trial: Trial, tmp_path: Path, imported: Callable[[str], Any]) -> None:
    (tmp_path / "asyncmy.py").write_text(OF_ASYNCIO)
    asyncmy = imported("asyncmy")

    async def operation() -> None:
        await asyncmy.connect(parameters(os.environ["DATABASE_URL"])["unix_socket"])

    with pytest.raises(
        Mistake, match=r"waits for a socket, of a client that has no gate.*asyncmy has no gate: use aiomysql"
    ):
        trial([operation, operation])
