"""What a run of all cases came to, as it is committed: docs/data/museum.json."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ROOT / "docs" / "data" / "museum-packages.json"
FILE = ROOT / "docs" / "data" / "museum.json"


def read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def write_packages(results: Sequence[dict[str, Any]]) -> None:
    text = json.dumps({"results": list(results)}, indent=1, ensure_ascii=False)
    PACKAGES.write_text(text + "\n", encoding="utf-8")


def write(results: Sequence[dict[str, Any]], seconds: float) -> dict[str, Any]:
    found = {"seconds": round(seconds), "results": list(results)}
    FILE.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return found
