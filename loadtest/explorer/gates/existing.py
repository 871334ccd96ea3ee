"""The connections that were there before the gates: no gate has seen how they were made."""

from __future__ import annotations

import gc
from typing import Any, TypeVar

T = TypeVar("T")


def existing(kind: type[T]) -> list[T]:
    """All things of this kind in the process.

    By their type: isinstance() also asks the thing, and a lazy one of Django would go and fetch what it stands for.
    """
    kinds = _with_subclasses(kind)
    return [thing for thing in gc.get_objects() if type(thing) in kinds]


def _with_subclasses(kind: type[Any]) -> set[type[Any]]:
    return {kind}.union(*map(_with_subclasses, kind.__subclasses__()))
