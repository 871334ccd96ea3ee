"""The connections that were there before the gates: no gate has seen how they were made."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import psycopg
from redis.connection import AbstractConnection

_before: weakref.WeakSet[Any] = weakref.WeakSet()


def look_around() -> None:
    """The gates are being put up: which connections are there? One look through the whole process, for all kinds.

    By their type: isinstance() also asks the thing, and a lazy one of Django would go and fetch what it stands for.
    """
    kinds = _with_subclasses(AbstractConnection) | _with_subclasses(psycopg.Connection)
    if pymysql := sys.modules.get("pymysql"):  # not everybody has it
        kinds |= _with_subclasses(pymysql.Connection)
    _before.clear()
    _before.update([thing for thing in gc.get_objects() if type(thing) in kinds])


def existing(kind: type[Any]) -> list[Any]:
    """Those of this kind that were there then, and still are."""
    return [each for each in _before if isinstance(each, kind)]


def _with_subclasses(kind: type[Any]) -> set[type[Any]]:
    return {kind}.union(*map(_with_subclasses, kind.__subclasses__()))
