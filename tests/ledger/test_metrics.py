"""/metrics: what is counted, summed over the real web server's processes, and who may read it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from ledger.books import open_book, post
from ledger.http import metrics_page
from ledger.http.question import ServerQuestion
from ledger.imports.upload import Upload, start_import
from ledger.models import Entry, ImportRun
from ledger.posting import Line, Posting, compute
from ledger.reconcile_stored import books_of
from ledger.stores import store_of
from loadtest.servers.webserver import WebServer
from lost_update_lab.embedded.ports import free_port
from tests.locks.actor import eventually
from tests.test_house import ROOT

pytestmark = pytest.mark.usefixtures("committed_db")
TOKEN = "scrape-me"


@pytest.fixture(scope="module")
def web(django_db_setup: None) -> Iterator[WebServer]:
    with WebServer(workers=3, threads=2, environment={"METRICS_TOKEN": TOKEN}) as server:
        yield server


def ask(url: str, body: Any = None, **headers: str) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return bytes(answer.read())


def samples(text: str) -> dict[tuple[str, ...], float]:
    """(name, label values in the order of their names …) → value"""
    return {
        (one.name, *(one.labels[label] for label in sorted(one.labels))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def scrape(web: WebServer) -> dict[tuple[str, ...], float]:
    return samples(ask(f"{web.url}/metrics", Authorization=f"Bearer {TOKEN}").decode())


def test_the_processes_of_the_web_server_are_added_up(web: WebServer) -> None:
    opened = {"strategy": "token", "accounts": [{"account": "A1", "opening": 5, "floor": 0}]}
    book = json.loads(ask(f"{web.url}/api/books", opened))["book"]["id"]
    postings = f"{web.url}/api/books/{book}/postings"
    for number in range(12):  # each on a new connection: any of the processes may answer
        ask(postings, {"account": "A1", "amount": 1}, **{"Idempotency-Key": f"k{number}"})
    ask(postings, {"account": "A1", "amount": 1}, **{"Idempotency-Key": "k0"})
    with pytest.raises(urllib.error.HTTPError, match="422"):
        ask(postings, {"account": "A1", "amount": -999}, **{"Idempotency-Key": "x"})
    ask(f"{web.url}/api/books/{book}/reconcile")
    for _ in range(3):  # whichever process answers
        seen = scrape(web)
        assert seen["lab_postings_total", "ok", "token"] == 12
        assert seen["lab_postings_total", "replayed", "token"] == 1
        assert seen["lab_postings_total", "refused", "token"] == 1
        assert seen["lab_lock_wait_seconds_count", "token"] == 13  # a replay takes no lock
        assert seen["lab_reconciliations_total", "right", "token"] == 1
        assert seen["lab_lost_amount", "token"] == 0
        assert seen["lab_database_up",] == 1
        assert seen["lab_database_deadlocks_total",] >= 0


@pytest.mark.whole_command
def test_a_background_worker_serves_what_it_counts(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    run = start_import(
        open_book("select-for-update", [("A1", 0, 0)], values={"think": [0, 0]}),
        [Upload("a.csv", b"seller,account,amount,reference\nacme,A1,1,r1\nacme,A1,-9,r2\n")],
        scan=False,
    )
    words = [sys.executable, "manage.py", "procrastinate", "worker", "--queues", "imports"]
    environment = {**os.environ, "METRICS_LISTEN": address, "METRICS_TOKEN": ""}
    worker = subprocess.Popen(words, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: ImportRun.objects.get(pk=run.pk).finished, "the import ended")
        seen = samples(ask(f"http://{address}/metrics").decode())
        assert seen["lab_import_lines_total", "posted"] == 1
        assert seen["lab_import_lines_total", "refused"] == 1
        with pytest.raises(urllib.error.HTTPError, match="404"):
            ask(f"http://{address}/admin/")
    finally:
        worker.terminate()
        worker.wait(60)


def test_what_a_killed_process_has_counted_stays(web: WebServer) -> None:
    before = {name: value for name, value in scrape(web).items() if name[0] == "lab_postings_total"}
    assert before
    web.recycle()
    after = scrape(web)
    assert {name: after[name] for name in before} == before


def test_the_counts_lie_in_a_folder_that_goes_with_the_server(web: WebServer) -> None:
    """gunicorn cannot remove it when it is killed; the server's reaper does."""
    assert any(web.metrics.glob("*.db"))
    assert web.metrics.is_relative_to(web.run)


@pytest.mark.parametrize("sent", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}])
def test_without_the_token_there_are_no_metrics(web: WebServer, sent: dict[str, str]) -> None:
    with pytest.raises(urllib.error.HTTPError, match="403") as refused:
        ask(f"{web.url}/metrics", **sent)
    assert b"METRICS_TOKEN" in refused.value.read()


@pytest.mark.parametrize(
    ("sender", "status"),
    [
        ({"REMOTE_ADDR": "127.0.0.1"}, 200),
        ({"REMOTE_ADDR": "::1"}, 200),
        ({"REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": "10.0.0.7:8000"}, 200),
        ({"REMOTE_ADDR": "10.0.0.7"}, 403),
        ({"REMOTE_ADDR": ""}, 403),
        ({"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "10.0.0.7"}, 403),
    ],
)
def test_without_a_token_only_this_machine_is_answered(
    sender: dict[str, str], status: int, settings: Any
) -> None:
    settings.METRICS_TOKEN = ""
    assert Client().get("/metrics", **sender).status_code == status


def test_a_database_that_does_not_answer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> None:
        raise DatabaseError("gone")

    monkeypatch.setattr(metrics_page, "_DATABASE", ServerQuestion(gone))
    seen = samples(Client().get("/metrics").content.decode())
    assert seen["lab_database_up",] == 0
    assert ("lab_database_deadlocks_total",) not in seen


@pytest.mark.deep
def test_lost_money_is_seen_when_a_book_is_reconciled() -> None:
    book = open_book("no-lock", [("A1", 0, None)], values={"think": [0, 0]})
    store = store_of(book)
    read = store.read(Posting("late", (Line("A1", 7),)))
    post(book, Posting("first", (Line("A1", 30),)))
    store.write(compute(Posting("late", (Line("A1", 7),)), read))  # the first one's entry is overwritten
    assert Entry.objects.filter(book=book).count() == 2
    books_of(book)
    seen = samples(Client().get("/metrics").content.decode())
    assert seen["lab_lost_amount", "no-lock"] == 30
    assert seen["lab_reconciliations_total", "wrong", "no-lock"] >= 1


@pytest.mark.deep
def test_every_metric_is_on_the_page_that_explains_them() -> None:
    page = (ROOT / "docs" / "operating.md").read_text()
    shown = Client().get("/metrics").content.decode()
    names = set(re.findall(r"^# TYPE (lab_\w+) ", shown, re.MULTILINE))
    assert names
    assert {name for name in names if f"`{name}`" not in page and not name.endswith("_created")} == set()
