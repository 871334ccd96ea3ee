"""Numbers that PostgreSQL gives to its sessions: a worker's session has another one in each search, and after each loss
of a connection. Written into a row, such a number would tell two outcomes apart that mean the same.
"""

from __future__ import annotations

import re

from lost_update_lab.model.errors import Broken
from lost_update_lab.model.sql_strings import without_strings
from lost_update_lab.servers.stamps import writes
from lost_update_lab.telling.narrative import shortened

SAY_WHO = "let the caller say who it is: by a name, or by a random key that it draws (uuid4)"
_PID = re.compile(r"\bpg_backend_pid\s*\(", re.IGNORECASE)


def beyond(text: str) -> Broken | None:
    """Does this command write the number of its session?"""
    if writes(text) and _PID.search(without_strings(text)):
        return Broken(
            f"it writes the number of its session, which is another one each time ({shortened(text, 80)})",
            SAY_WHO,
        )
    return None
