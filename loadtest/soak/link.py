"""One caller's connection to the ledger, and what an answer (or its absence) means for the money."""

from __future__ import annotations

import json
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from typing import Any

from ledger.reconcile import ClientOutcome
from loadtest.swarm.bank import headers

TIMEOUT = 20.0  # seconds to wait for an answer
LOST = "the reply was lost on its way"
APPLIED = (200, 201)  # a repeated key, and a new one


class KeptConnection:
    """A connection that stays open between requests and is replaced after any failure."""

    def __init__(self, host: str, port: int) -> None:
        self.http = HTTPConnection(host, port, timeout=TIMEOUT)

    def post(
        self, path: str, body: Any, key: str, *, drop: bool = False
    ) -> tuple[ClientOutcome, dict[str, Any]]:
        """Send one posting. `drop`: if the reply says that it was applied, lose it: the caller never reads it."""
        try:
            self.http.request("POST", path, json.dumps(body).encode(), {**headers(), "Idempotency-Key": key})
            answer = self.http.getresponse()
            status = answer.status
            if drop and status in APPLIED:
                self.http.close()
                return ClientOutcome.INFO, {"detail": LOST, "dropped": True}
            said = _read(answer.read())
        except (OSError, HTTPException) as error:
            self.http.close()
            return ClientOutcome.INFO, {"detail": f"{type(error).__name__}: {error}"}
        if status in APPLIED:
            return ClientOutcome.OK, said
        said.setdefault("detail", f"status {status}")
        return (ClientOutcome.FAIL if said.get("applied") == "no" else ClientOutcome.INFO), {
            **said,
            "status": status,
        }


def _read(body: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        said = json.loads(body)
        if isinstance(said, dict):
            return said
    return {}
