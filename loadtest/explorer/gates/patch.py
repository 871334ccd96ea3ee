"""Put a function in the place of another, wherever a module holds it (`from time import sleep` does)."""

from __future__ import annotations

import sys
from typing import Any


class Patches:
    """What was replaced, so that it can be put back."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any]] = []

    def method(self, owner: Any, name: str, replacement: Any) -> None:
        self._undo.append((owner, name, vars(owner).get(name, getattr(owner, name))))
        setattr(owner, name, replacement)

    def everywhere(self, original: Any, replacement: Any) -> None:
        """In every module that is loaded; modules loaded later import the replacement."""
        for module in list(sys.modules.values()):
            names = getattr(module, "__dict__", None)
            if not isinstance(names, dict) or str(names.get("__name__")).startswith("loadtest.explorer."):
                continue
            for name, value in list(names.items()):
                if value is original:
                    self.method(module, name, replacement)

    def undo(self) -> None:
        for owner, name, original in reversed(self._undo):
            setattr(owner, name, original)
        self._undo.clear()
