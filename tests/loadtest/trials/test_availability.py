"""The message for a missing server: how to get it, or how to start it."""

import pytest

from loadtest.trials import availability
from loadtest.trials.availability import missing

REPEATABLE = "repeatable-read-innodb"


@pytest.fixture
def mariadb(monkeypatch: pytest.MonkeyPatch):
    def put(there: bool, lacks: str | None) -> None:
        row = ("MariaDB", lambda: there, lambda: lacks, "MARIADB_URL")
        monkeypatch.setitem(availability.SERVERS, "mariadb", row)

    return put


def test_a_running_server_is_not_missing(mariadb) -> None:
    mariadb(there=True, lacks=None)
    assert missing(REPEATABLE, "mariadb") is None


def test_a_missing_server_is_to_be_installed(mariadb) -> None:
    mariadb(there=False, lacks="install mariadb-server")
    assert missing(REPEATABLE, "mariadb") == (
        "no MariaDB: install mariadb-server",
        "apt-get install mariadb-server, then `python manage.py servers up --all`; or set MARIADB_URL",
    )


def test_an_installed_server_is_to_be_started(mariadb) -> None:
    mariadb(there=False, lacks=None)
    assert missing(REPEATABLE, "mariadb") == (
        "no MariaDB: it is installed, but is not running",
        "`python manage.py servers up --all`; or set MARIADB_URL",
    )


def test_a_strategy_that_is_not_for_this_store_needs_no_server_of_it(mariadb) -> None:
    mariadb(there=False, lacks=None)
    reason, remedy = missing("repeatable-read", "mariadb") or ("", "")
    assert (reason, remedy) == ("it keeps its accounts only on postgres, not on mariadb", "")
