"""An entry in the Redis store: JSON, in its account's list and in its key's record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone

from ledger.posting import Change, Stored, worker
from ledger.reconcile import EntryRow


def as_json(change: Change) -> str:
    """Return the entry that explains `change`."""
    return json.dumps(
        {
            **known(change.key, change.before.number, change.amount, change.entry, change.before.read_at),
            "balance_before": change.before.balance,
            "balance_after": change.after,
            "parent": str(change.before.head) if change.before.head else None,
        }
    )


def known(key: str, account: str, amount: int, entry: UUID, read_at: datetime) -> dict[str, Any]:
    """Return the fields of an entry that a writer knows before it has read anything."""
    return {
        "id": str(entry),
        "key": key,
        "account": account,
        "amount": amount,
        "worker": worker(),
        "read_at": read_at.isoformat(),
        "written_at": timezone.now().isoformat(),
    }


def row(entry: dict[str, Any], seq: int) -> EntryRow:
    """Return the fields of an entry that reconcile needs."""
    return EntryRow(
        id=UUID(entry["id"]),
        key=entry["key"],
        amount=entry["amount"],
        balance_before=entry["balance_before"],
        balance_after=entry["balance_after"],
        parent=UUID(entry["parent"]) if entry["parent"] else None,
        worker=entry["worker"],
        read_at=datetime.fromisoformat(entry["read_at"]),
        written_at=datetime.fromisoformat(entry["written_at"]),
        seq=seq,
    )


def record_of(changes: Sequence[Change]) -> str:
    """Return the record of a posting's key."""
    entries = ",".join(as_json(change) for change in changes)
    return f'{{"fingerprint":"{changes[0].fingerprint}","entries":[{entries}]}}'


def parsed(record: bytes) -> tuple[str, tuple[Stored, ...]]:
    """Return (fingerprint, entries) of a key's record."""
    found = json.loads(record)
    return found["fingerprint"], tuple(
        Stored(UUID(e["id"]), e["account"], e["amount"], e["balance_before"], e["balance_after"])
        for e in found["entries"]
    )
