"""The text about a strategy: its sentences, its claim, and its textbook page."""

from __future__ import annotations

import sys
from typing import Any

from ledger.strategies import Strategy
from loadtest.faults.sentences import about
from locks.hazards import Hazard

SENTENCES = ("slug", "title", "guarantees", "breaks_when", "round_trips", "source", "stores")


def sentences(found: type[Strategy]) -> dict[str, Any]:
    """Return the sentences of a strategy. (A template would call the class itself.)"""
    return {name: getattr(found, name) for name in SENTENCES}


def textbook(found: type[Strategy]) -> str:
    """Return its textbook page: the docstring of its file, or of the lock's file if it was made from a lock."""
    return sys.modules[found.__module__].__doc__ or ""


def claim(found: type[Strategy]) -> list[dict[str, Any]]:
    """Return each hazard, what it is, and whether the strategy claims to keep the balance under it."""
    return [
        {"hazard": str(hazard), "about": about(hazard), "claimed": hazard in found.withstands}
        for hazard in Hazard
    ]
