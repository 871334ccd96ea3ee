"""Lists as the text of PostgreSQL arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def plain(values: Iterable[str]) -> str:
    """Return numbers, ids or NULL as a PostgreSQL array."""
    return "{" + ",".join(values) + "}"


def quoted(values: Sequence[str]) -> str:
    """Return arbitrary texts as a PostgreSQL array."""
    if not values:
        return "{}"
    together = "".join(values)
    if '"' in together or "\\" in together:
        values = [value.replace("\\", "\\\\").replace('"', '\\"') for value in values]
    return '{"' + '","'.join(values) + '"}'
