"""A gunicorn worker that reads requests as waitress does: a thread gets a request when all of it has arrived.

gunicorn's own threads read from the connection, so a client that sends half a request holds a thread
(docs/decisions/0012). Here one loop reads and writes all connections of the process, and a slow client costs memory and
a file descriptor. gunicorn still does what it does well: its workers share one port, and it replaces those that die.
"""

from __future__ import annotations

import json
import os
import time

from csp.utils import build_policy
from django.conf import settings
from django.template.loader import render_to_string
from gunicorn.workers.base import Worker
from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import BaseWSGIServer, create_server
from waitress.task import ErrorTask, ThreadedTaskDispatcher
from waitress.utilities import RequestEntityTooLarge

#: bytes of a multipart form beside its files
FORM_BYTES = 1_000_000
HEADER_BYTES = 32_768


class Threads(ThreadedTaskDispatcher):
    """Starts a thread only when it is needed, because each has its own connection to PostgreSQL."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def add_task(self, task: HTTPChannel) -> None:
        idle = len(self.threads) - self.stop_count - self.active_count
        if len(self.queue) >= idle and len(self.threads) < self.most:
            self.set_thread_count(len(self.threads) + 1)
        super().add_task(task)


class TooLarge(RequestEntityTooLarge):
    """413 in the form of the other errors: JSON under /api/, a page elsewhere. Django never sees the request, which was
    not read."""

    def __init__(self, path: str, most: int) -> None:
        self.api, self.most = path.startswith("/api/"), most
        super().__init__(f"the request is larger than the {most:,} bytes that this server takes")

    def to_response(self, ident: str | None = None) -> tuple[str, list[tuple[str, str]], bytes]:
        status = f"{self.code} {self.reason}"
        if self.api:
            told = json.dumps({"detail": self.body, "applied": "no"})
            return status, [("Content-Type", "application/json")], told.encode()
        page = render_to_string("413.html", {"most": self.most})
        policy = "Content-Security-Policy", build_policy()
        return status, [("Content-Type", "text/html; charset=utf-8"), policy], page.encode()


class Refusal(ErrorTask):
    """An error that waitress answers by itself. For a body that is too large it would give only the code."""

    def execute(self) -> None:
        if isinstance(self.request.error, RequestEntityTooLarge):
            most = self.channel.adj.max_request_body_size
            self.request.error = TooLarge(self.request.path, most)
        super().execute()


class Channel(HTTPChannel):
    error_task_class = Refusal


class WaitressWorker(Worker):
    """The `worker_class` of ledger/http/gunicorn.py. It ends with its master."""

    def run(self) -> None:
        self.connections: dict[int, wasyncore.dispatcher] = {}
        create_server(
            self.wsgi,
            map=self.connections,
            _dispatcher=Threads(self.cfg.threads),
            sockets=[listener.sock for listener in self.sockets],
            connection_limit=self.cfg.worker_connections,
            channel_timeout=self.cfg.keepalive,  # seconds without a byte, also in the middle of a request
            cleanup_interval=5,
            max_request_header_size=HEADER_BYTES,
            max_request_body_size=settings.IMPORT_MAX_BYTES + FORM_BYTES,
            clear_untrusted_proxy_headers=False,  # Django reads X-Forwarded-Proto itself
            ident=None,
        )
        for listener in self.connections.values():
            listener.channel_class = Channel
        while self.alive and os.getppid() == self.ppid:
            self._turn()
        self._finish(time.monotonic() + self.cfg.graceful_timeout)

    def _turn(self) -> None:
        """Serve the connections that have something to read, for at most a second."""
        self.notify()
        wasyncore.loop(timeout=1.0, map=self.connections, use_poll=True, count=1)

    def _finish(self, deadline: float) -> None:
        """Accept no new connections, and answer the requests that have arrived."""
        for each in self.connections.values():
            if isinstance(each, BaseWSGIServer):
                each.accepting = False
        while time.monotonic() < deadline and any(map(_busy, list(self.connections.values()))):
            self._turn()


def _busy(connection: wasyncore.dispatcher) -> bool:
    return isinstance(connection, HTTPChannel) and bool(connection.requests or connection.total_outbufs_len)
