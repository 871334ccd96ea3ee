"""The texts in a command of MariaDB: what stands there is no word of SQL."""

from __future__ import annotations

import re
from functools import lru_cache

_LITERAL = re.compile(r"'(?:[^'\\]|''|\\.)*'|\"(?:[^\"\\]|\"\"|\\.)*\"", re.DOTALL)


@lru_cache(maxsize=1 << 12)
def without_literals(text: str) -> str:
    return _LITERAL.sub("''", text)
