"""The single writer's parts: the lease of ownership, the connections, the group that is committed, the owner's loop."""

from ledger.writer.caller import Answer, ask
from ledger.writer.owner import Owner

__all__ = ["Answer", "Owner", "ask"]
