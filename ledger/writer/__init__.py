"""The single writer: the lease of ownership, the connections, the group to commit, the owner's loop."""

from ledger.writer.caller import Answer, ask
from ledger.writer.owner import Owner

__all__ = ["Answer", "Owner", "ask"]
