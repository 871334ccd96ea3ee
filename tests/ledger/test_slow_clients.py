"""Slow clients among others, on the real web server: a client that sends or reads slowly holds no thread."""

from __future__ import annotations

import json
import signal
import socket
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from django.db import connection, transaction

from ledger.models import Account
from loadtest.servers.webserver import WebServer
from tests.ledger.race.sessions import session_of, waiting_for
from tests.locks.actor import eventually
from tests.site.page_rules import breaches

pytestmark = pytest.mark.usefixtures("committed_db")
THREADS, SLOW = 2, 40
POST = b"POST /api/books HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n"
SENDERS = {"half the headers": POST + b"X-Slow: ", "half the body": POST + b"\r\n{", "nothing": b""}


@pytest.fixture(scope="module")
def web(django_db_setup: None) -> Iterator[WebServer]:
    """As `make serve` has it, with one process and two threads: two slow clients would be enough."""
    with WebServer(workers=1, threads=THREADS) as server:
        yield server


def opened(web: WebServer, book: dict[str, Any]) -> str:
    headers = {"Content-Type": "application/json"}
    made = urllib.request.Request(f"{web.url}/api/books", json.dumps(book).encode(), headers)
    return str(json.load(urllib.request.urlopen(made, timeout=30))["book"]["id"])


def answered(web: WebServer, patience: float) -> bool:
    try:
        with urllib.request.urlopen(f"{web.url}/health/live", timeout=patience) as answer:
            return bool(answer.status == 200)
    except TimeoutError:
        return False


def senders(web: WebServer, half: bytes) -> ExitStack:
    """Many more connections than threads, each with half a request (slowloris)."""
    links = ExitStack()
    for _ in range(SLOW):
        link = links.enter_context(socket.create_connection(("127.0.0.1", web.port)))
        link.sendall(half)
    return links


def readers(web: WebServer) -> ExitStack:
    """More connections than threads, each of which asks for megabytes and reads nothing."""
    accounts = [{"account": f"{n:040}"} for n in range(1000)]
    book = opened(web, {"strategy": "no-lock", "accounts": accounts})
    links = ExitStack()
    for _ in range(2 * THREADS):
        link = links.enter_context(socket.socket())
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.connect(("127.0.0.1", web.port))
        link.sendall(f"GET /api/books/{book} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * 80)
    return links


KINDS: dict[str, Callable[[WebServer], ExitStack]] = {
    **{f"sends {name}": lambda web, half=half: senders(web, half) for name, half in SENDERS.items()},
    "reads nothing": readers,
}


@pytest.mark.parametrize("kind", KINDS)
def test_slow_clients_block_nobody(kind: str, web: WebServer) -> None:
    with KINDS[kind](web):
        assert all(answered(web, 30) for _ in range(5))


@pytest.mark.deep(short=False)
def test_gunicorns_own_threads_are_blocked_by_the_same_clients() -> None:
    """The control: on the worker class that the lab had before, the same clients are seen to block."""
    own = {"GUNICORN_CMD_ARGS": "--worker-class=gthread"}
    with WebServer(workers=1, threads=THREADS, environment=own) as web:
        for kind in ("reads nothing", "sends half the body"):
            with KINDS[kind](web):  # the readers' answers must fill the buffers first
                assert any(not answered(web, 2) for _ in range(1000))
        web.kill()  # its threads wait for the rest of the requests


def test_a_body_beyond_every_limit_is_refused_before_it_is_read(web: WebServer) -> None:
    with socket.create_connection(("127.0.0.1", web.port), timeout=30) as link:
        link.sendall(POST.replace(b"100", b"99000000000") + b"\r\n")
        head, body = everything(link).split(b"\r\n\r\n", 1)
        assert head.startswith(b"HTTP/1.1 413 ")
        told = json.loads(body)
        assert ("11,000,000 bytes" in told["detail"], told["applied"]) == (True, "no")


@pytest.mark.deep
def test_a_form_beyond_every_limit_has_a_page(web: WebServer) -> None:
    form = (
        b"POST /admin/ledger/importrun/add/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 11000000\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", web.port), timeout=30) as link:
        link.sendall(form)
        head, page = everything(link).decode().split("\r\n\r\n", 1)
        assert head.startswith("HTTP/1.1 413 ")
        policy = next(each for each in head.splitlines() if each.startswith("Content-Security-Policy: "))
        assert not breaches(policy.partition(": ")[2], page)
        assert "may have 11,000,000 bytes together" in page


def everything(link: socket.socket) -> bytes:
    """Until the server hangs up."""
    return b"".join(iter(lambda: link.recv(65536), b""))


class Polite(WebServer):
    """It is as patient as a test needs."""

    stop_timeout = 120.0

    def command(self) -> list[str]:
        return [*super().command(), "--graceful-timeout=60"]


def takes_nobody(web: WebServer) -> bool:
    try:
        return not answered(web, 2)
    except OSError:  # its port is closed
        return True


@pytest.mark.deep
def test_requests_that_have_arrived_are_answered_at_shutdown() -> None:
    """SIGTERM is the polite end. A half request is not waited for; a whole one is, which stands before an account."""
    with Polite(workers=1, threads=THREADS) as web, ThreadPoolExecutor(1) as ending, ExitStack() as links:
        book = opened(web, {"strategy": "select-for-update", "count": 1})
        body = b'{"account": "A0001", "amount": 1}'
        head = POST.replace(b"100", str(len(body)).encode()).replace(
            b"/books", f"/books/{book}/postings".encode()
        )
        links.enter_context(senders(web, SENDERS["half the body"]))
        link = links.enter_context(socket.create_connection(("127.0.0.1", web.port), timeout=60))
        with transaction.atomic():
            assert Account.objects.select_for_update().get(book=book)
            link.sendall(head + b"Idempotency-Key: k\r\n\r\n" + body)
            eventually(lambda: waiting_for(session_of(connection)), "the posting waits for its account")
            ended = ending.submit(web.stop, signal.SIGTERM)
            eventually(lambda: takes_nobody(web), "the server has heard it, and takes no new connection")
        assert link.recv(1000).startswith(b"HTTP/1.1 201 ")
        ended.result()
