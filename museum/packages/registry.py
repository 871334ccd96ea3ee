"""All packages, found by their files: package_*.py holds `PACKAGE`, and its docstring what its trials ask."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from pathlib import Path
from types import ModuleType

BEGIN = "package_"


def load() -> dict[str, ModuleType]:
    """name → module"""
    here = Path(__file__).parent
    names = sorted(each.name for each in pkgutil.iter_modules([str(here)]) if each.name.startswith(BEGIN))
    return {
        name.removeprefix(BEGIN).replace("_", "-"): import_module(f"museum.packages.{name}") for name in names
    }
