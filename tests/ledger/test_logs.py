"""JSON logs of the real web server: which request, which posting."""

from __future__ import annotations

import json
import logging
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from ledger import logs
from loadtest.servers.webserver import WebServer

pytestmark = pytest.mark.usefixtures("committed_db")


@pytest.fixture(scope="module")
def web(django_db_setup: None) -> Iterator[WebServer]:
    with WebServer(workers=2, threads=2, environment={"LOG_FORMAT": "json", "LOG_LEVEL": "INFO"}) as server:
        yield server


def ask(url: str, body: Any, **headers: str) -> tuple[int, str]:
    """(status, X-Request-ID of the answer)"""
    sent = {"Content-Type": "application/json", **{name.replace("_", "-"): x for name, x in headers.items()}}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), sent)) as answer:
            return answer.status, answer.headers["X-Request-ID"]
    except urllib.error.HTTPError as error:
        return error.code, error.headers["X-Request-ID"]


def about(web: WebServer, ident: str) -> dict[str, Any]:
    lines = [json.loads(line) for line in web.log.read_text().splitlines() if line.startswith("{")]
    (found,) = [line for line in lines if line["request_id"] == ident and line["name"] == "ledger.request"]
    return found


def test_a_request_is_logged_with_its_id_and_its_posting(web: WebServer) -> None:
    nowhere = f"{web.url}/api/books/00000000-0000-4000-8000-000000000000/postings"
    body = {"account": "A1", "amount": 1}
    assert ask(nowhere, body, X_Request_ID="mine-1", Idempotency_Key="k7") == (404, "mine-1")
    line = about(web, "mine-1")
    assert (line["posting"], line["status"], line["levelname"]) == ("k7", 404, "INFO")
    assert line["ms"] >= 0


def test_an_id_that_would_forge_a_line_is_replaced(web: WebServer) -> None:
    status, ident = ask(f"{web.url}/api/books", {}, X_Request_ID='a" b')
    assert status == 422
    assert ident.isalnum()
    assert about(web, ident)["posting"] == ""


@pytest.mark.deep
def test_outside_of_the_block_a_record_is_about_nothing() -> None:
    def ids() -> tuple[str, str]:
        record = logging.makeLogRecord({})
        logs.About().filter(record)
        return record.request_id, record.posting  # type: ignore[attr-defined]

    with logs.about(logs.REQUEST, "r"), logs.about(logs.POSTING, "p"):
        assert ids() == ("r", "p")
    assert ids() == ("", "")


@pytest.mark.deep
def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="LOG_FORMAT='xml': write line"):
        logs.settings("xml", "INFO")
