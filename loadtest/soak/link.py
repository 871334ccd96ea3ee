"""One caller's connection to the ledger, and what an answer (or its absence) means for the money."""

from __future__ import annotations

import json
import select
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from typing import Any

from ledger.reconcile import ClientOutcome
from loadtest.swarm.bank import headers

TIMEOUT = 20.0  # seconds to wait for an answer
LOST = "the reply was lost on its way"


class KeptConnection:
    """A connection that stays open between requests and is replaced after any failure."""

    def __init__(self, host: str, port: int) -> None:
        self.http = HTTPConnection(host, port, timeout=TIMEOUT)

    def post(
        self, path: str, body: Any, key: str, *, drop: bool = False
    ) -> tuple[ClientOutcome, dict[str, Any]]:
        """Send one posting. `drop`: lose its reply, which has begun to arrive but is not read."""
        try:
            self.http.request("POST", path, json.dumps(body).encode(), {**headers(), "Idempotency-Key": key})
            if drop:
                return self._lose_the_reply()
            answer = self.http.getresponse()
            status, said = answer.status, _read(answer.read())
        except (OSError, HTTPException) as error:
            self.http.close()
            return ClientOutcome.INFO, {"detail": f"{type(error).__name__}: {error}"}
        if status in (200, 201):
            return ClientOutcome.OK, said
        said.setdefault("detail", f"status {status}")
        return (ClientOutcome.FAIL if said.get("applied") == "no" else ClientOutcome.INFO), {
            **said,
            "status": status,
        }

    def _lose_the_reply(self) -> tuple[ClientOutcome, dict[str, Any]]:
        came = bool(select.select([self.http.sock], [], [], TIMEOUT)[0])
        self.http.close()
        return ClientOutcome.INFO, {"detail": LOST, "dropped": came}


def _read(body: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        said = json.loads(body)
        if isinstance(said, dict):
            return said
    return {}
