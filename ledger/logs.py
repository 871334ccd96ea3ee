"""What each log record is about: the request that caused it, and the posting that it concerns.

{"asctime": "…", "levelname": "INFO", "name": "ledger.request", "message": "POST /api/books/…/postings 201",
 "request_id": "5f0c…", "posting": "k7", "status": 201, "ms": 3.1}
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

#: the request's id: the caller's X-Request-ID, or one of our own
REQUEST: ContextVar[str] = ContextVar("request_id", default="")
#: the posting's idempotency key
POSTING: ContextVar[str] = ContextVar("posting", default="")


@contextmanager
def about(what: ContextVar[str], value: str) -> Iterator[None]:
    """Inside the block, what is logged is about `value`."""
    before = what.set(value)
    try:
        yield
    finally:
        what.reset(before)


class About(logging.Filter):
    """Puts both ids on every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id, record.posting = REQUEST.get(), POSTING.get()
        return True


def settings(form: str, level: str) -> dict[str, Any]:
    """Return Django's LOGGING. `form`: `line` or `json`. Raises ValueError."""
    if form not in ("line", "json"):
        raise ValueError(f"LOG_FORMAT={form!r}: write line (for people) or json (for programs)")
    words = "%(asctime)s %(levelname)s %(name)s %(message)s"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"about": {"()": "ledger.logs.About"}},
        "formatters": {
            "line": {"format": words},
            "json": {
                "()": "pythonjsonlogger.json.JsonFormatter",
                "format": f"{words} %(request_id)s %(posting)s",
            },
        },
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": form, "filters": ["about"]},
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "waitress.queue": {"level": "ERROR"},  # it logs a line for each request that waits for a thread
        },
    }
