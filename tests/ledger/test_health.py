"""The real web server while its servers are away: the health pages say so, and say when they are back."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from loadtest.servers import Postgres, Valkey
from loadtest.servers.webserver import WebServer


@pytest.fixture
def servers() -> Iterator[tuple[WebServer, Postgres, Valkey]]:
    """A web server on a private PostgreSQL (empty) and Valkey: one process, two threads."""
    with ExitStack() as stack:
        postgres, valkey = stack.enter_context(Postgres()), stack.enter_context(Valkey())
        addresses = {"DATABASE_URL": postgres.url, "REDIS_URL": valkey.url}
        web = WebServer(workers=1, threads=2, environment=addresses)
        yield stack.enter_context(web), postgres, valkey


def ask(web: WebServer, path: str) -> tuple[int, dict[str, str]]:
    try:
        with urllib.request.urlopen(f"{web.url}{path}", timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.deep
def test_servers_that_say_nothing_take_no_thread_of_the_web(servers) -> None:
    web, postgres, valkey = servers  # two threads
    postgres.pause()
    valkey.pause()
    for _ in range(3):
        status, said = ask(web, "/health/ready")
        assert (status, said["database"], said["redis"]) == (503, "TimeoutError", "TimeoutError")
        assert ask(web, "/health/live") == (200, {"status": "ok"})
        with urllib.request.urlopen(f"{web.url}/metrics", timeout=30) as answer:
            assert b"lab_database_up 0.0" in answer.read()  # and the rest of what is known
    postgres.resume()
    valkey.resume()
    while (
        ask(web, "/health/ready")[0] != 200
    ):  # the question that was under way may end in its client's time-out
        pass


def test_health_tells_the_truth_while_its_servers_are_away(servers) -> None:
    web, postgres, valkey = servers
    assert ask(web, "/health/ready") == (200, {"status": "ok", "database": "ok", "redis": "ok"})
    valkey.kill()
    status, said = ask(web, "/health/ready")
    assert (status, said["status"], said["database"]) == (503, "unavailable", "ok")
    assert said["redis"] == "ConnectionError"
    postgres.kill()
    status, said = ask(web, "/health/ready")
    assert (status, said["database"], said["redis"]) == (503, "OperationalError", "ConnectionError")
    assert ask(web, "/health/live") == (200, {"status": "ok"})  # the process itself is well
    valkey.start()
    postgres.start()
    assert ask(web, "/health/ready")[0] == 200
