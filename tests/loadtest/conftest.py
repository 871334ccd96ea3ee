"""What several tests of this folder need."""

from collections.abc import Iterator

import pytest

from loadtest.servers.webserver import WebServer


@pytest.fixture(scope="package")
def ledger(django_db_setup: None) -> Iterator[str]:
    """The address of a web server on the session's databases."""
    with WebServer(workers=2) as server:
        yield server.url
