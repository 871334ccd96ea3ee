"""The output files of a measuring command: its evidence, and a new index.html.

measured → compare.json, whole or not at all → index.html from all evidence in the folder
nothing was run → neither: the files of an earlier run stay
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loadtest.report.page import NoEvidence, write
from loadtest.trials import records
from loadtest.verdict.words import Word


def measured(report: Mapping[str, Any]) -> bool:
    """Was anything run at all? `not-run` is no measurement."""
    return any(each["verdict"] != Word.NOT_RUN for each in report["results"])


def keep(report: dict[str, Any], file: Path) -> list[str]:
    """Write the evidence to `file` and the page beside it. Returns a sentence for each."""
    if not measured(report):
        stays = f"{file} stays as it was" if file.exists() else f"there is no {file}"
        return [f"Not written, because nothing was run: {stays}"]
    records.write(report, file)
    return [f"Written: {file}", *renew(file.parent)]


def renew(folder: Path) -> list[str]:
    """Write a new page. Returns a sentence: the path, or why there is no page. The evidence stays in either case."""
    try:
        return [f"Written: {write(folder)}"]
    except NoEvidence as error:
        return [f"No index.html: {error}"]
