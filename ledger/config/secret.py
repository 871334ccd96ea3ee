"""The secret key: from the environment in production, otherwise made once and kept in the lab folder."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def secret_key(folder: Path, *, production: bool) -> str:
    """Return this checkout's key. Raises ImproperlyConfigured in production if the environment has none."""
    if production:
        raise ImproperlyConfigured("Set SECRET_KEY (50 random characters or more): PRODUCTION is on.")
    path = folder / "secret_key"
    folder.mkdir(parents=True, exist_ok=True)
    made = secrets.token_urlsafe(50)
    try:  # O_EXCL: of two processes that start at once, one writes and both read the same key
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path.read_text() or made
    with os.fdopen(descriptor, "w") as file:
        file.write(made)
    return made
