"""The single writer's parts: the lease of ownership, the queue, the group that is committed, the owner's loop."""

from ledger.writer.owner import Owner
from ledger.writer.queue import Answer, Queue

__all__ = ["Answer", "Owner", "Queue"]
