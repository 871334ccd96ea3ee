"""A gunicorn worker that reads requests as waitress does: a thread works on a request that has arrived whole.

gunicorn's own threads read from the connection themselves, so that a client that sends half a request holds a
thread (docs/decisions/0012). Here one loop reads and writes all connections of the process, and slow clients cost
memory and a file descriptor each. gunicorn keeps what it does well: workers that share one port, and new ones for
those that die.
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

#: what a multipart form has beside its files
FORM_BYTES = 1_000_000
HEADER_BYTES = 32_768


class Threads(ThreadedTaskDispatcher):
    """Threads come when they are needed: each has a connection to PostgreSQL of its own."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def add_task(self, task: HTTPChannel) -> None:
        idle = len(self.threads) - self.stop_count - self.active_count
        if len(self.queue) >= idle and len(self.threads) < self.most:
            self.set_thread_count(len(self.threads) + 1)
        super().add_task(task)


class TooLarge(RequestEntityTooLarge):
    """413 as the rest of the service says it: JSON under /api/, elsewhere a page. Django is not asked: the request was
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
    """What waitress refuses by itself; of what is too large it only says the code."""

    def execute(self) -> None:
        if isinstance(self.request.error, RequestEntityTooLarge):
            most = self.channel.adj.max_request_body_size
            self.request.error = TooLarge(self.request.path, most)
        super().execute()


class Channel(HTTPChannel):
    error_task_class = Refusal


class WaitressWorker(Worker):
    """`worker_class` of ledger/http/gunicorn.py. It ends when its master does."""

    def run(self) -> None:
        self.connections: dict[int, wasyncore.dispatcher] = {}
        create_server(
            self.wsgi,
            map=self.connections,
            _dispatcher=Threads(self.cfg.threads),
            sockets=[listener.sock for listener in self.sockets],
            connection_limit=self.cfg.worker_connections,
            channel_timeout=self.cfg.keepalive,  # seconds without a byte, within a request too
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
        """Serve the connections that have something for us, for a second at most."""
        self.notify()
        wasyncore.loop(timeout=1.0, map=self.connections, use_poll=True, count=1)

    def _finish(self, deadline: float) -> None:
        """Take no new connection, and answer what has arrived."""
        for each in self.connections.values():
            if isinstance(each, BaseWSGIServer):
                each.accepting = False
        while time.monotonic() < deadline and any(map(_busy, list(self.connections.values()))):
            self._turn()


def _busy(connection: wasyncore.dispatcher) -> bool:
    return isinstance(connection, HTTPChannel) and bool(connection.requests or connection.total_outbufs_len)
