"""Gaps: a lease ends while no worker is in the middle of anything. Then it ends between two operations."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import NamedTuple

#: (server, key) of a lease
Lease = tuple[str, str]
#: no lease ends, and yet clocks show another time: a pause that lasts an hour (Bounds.aside)
AN_HOUR: Lease = ("", "")


class Gap(NamedTuple):
    """`lease`: the one that ends. `ended`: the numbers of the workers that have ended by then, in their order. All
    others have changed nothing yet."""

    lease: Lease
    ended: tuple[int, ...]


def written(gaps: Collection[Gap]) -> bytes:
    """The gaps of a run, as a part of the contents that a judge gets (SystemUnderTest.judge)."""
    return json.dumps(sorted(gaps)).encode()


def read(text: bytes) -> tuple[Gap, ...]:
    """The same again. `text` empty: none."""
    return tuple(Gap((server, key), tuple(ended)) for (server, key), ended in json.loads(text or b"[]"))
