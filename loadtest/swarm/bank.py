"""The ledger as the swarm's master sees it: an HTTP API. Standard library only."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from typing import Any

NOT_FOUND = 404


class BankError(Exception):
    """The ledger refused, or cannot be reached. The message has its reply."""


def headers() -> dict[str, str]:
    """Return the headers of each request: JSON, and the token in API_TOKEN, if there is one."""
    token = os.environ.get("API_TOKEN")
    return {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}


class Bank:
    """The API at `host`, e.g. http://127.0.0.1:8000."""

    def __init__(self, host: str, timeout: float = 30.0) -> None:
        self.host, self.timeout = host.rstrip("/"), timeout

    def strategies(self) -> list[dict[str, Any]]:
        return self._ask("strategies")  # type: ignore[no-any-return]

    def open_book(self, **body: Any) -> str:
        """Open a book. Return its id."""
        return str(self._ask("books", body)["book"]["id"])

    def book(self, book: str) -> dict[str, Any]:
        return self._ask(f"books/{book}")  # type: ignore[no-any-return]

    def balance(self, book: str) -> int:
        """Return the sum of the book's balances."""
        return sum(account["balance"] for account in self.book(book)["accounts"])

    def reconcile(self, book: str) -> dict[str, Any]:
        return self._ask(f"books/{book}/reconcile")  # type: ignore[no-any-return]

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> Any:
        url = f"{self.host}/api/{path}"
        if not url.startswith(("http://", "https://")):
            raise BankError(f"{self.host!r} is not an address: give --host http://127.0.0.1:8000")
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, headers())  # noqa: S310  (checked above)
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read(2000).decode(errors="replace")
            hint = ": does the server use other databases (DATABASE_URL)?" if error.code == NOT_FOUND else ""
            raise BankError(f"{url} answered {error.code}: {text}{hint}") from error
        except OSError as error:
            raise BankError(f"{url} does not answer ({error}): is the server up? `make serve`") from error
