"""What a measuring command leaves in its folder: its evidence, and index.html, which is made anew with it.

measured → compare.json, whole or not at all → index.html from all evidence of the folder
nothing was run → neither: what an earlier run found stays
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadtest.report.page import NoEvidence, write
from loadtest.trials import records
from loadtest.verdict.words import Word


def measured(report: Mapping[str, Any]) -> bool:
    """Was anything run at all? What was `not-run` says nothing."""
    return any(each["verdict"] != Word.NOT_RUN for each in report["results"])


def keep(report: dict[str, Any], file: Path) -> list[str]:
    """Write the evidence to `file`, and the page beside it. Returns a sentence for each."""
    if not measured(report):
        stays = f"{file} stays as it was" if file.exists() else f"there is no {file}"
        return [f"Not written, because nothing was run: {stays}"]
    records.write(report, file)
    return [f"Written: {file}", *renew(file.parent)]


def renew(folder: Path) -> list[str]:
    """Write the page anew. Returns a sentence: where it is, or what it cannot be made from; the evidence stays."""
    try:
        return [f"Written: {write(folder)}"]
    except NoEvidence as error:
        return [f"No index.html: {error}"]
