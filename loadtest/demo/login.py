"""The login of the demo: a superuser on a loopback address, with a password that is made once and kept."""

from __future__ import annotations

import fcntl
import os
import secrets

from django.contrib.auth import get_user_model

from ledger.addresses import lab_dir

NAME = "demo"


def demo_login() -> tuple[str, str]:
    """Create the user or set its password; returns (name, password).

    The password is DEMO_PASSWORD, or a random one that this checkout keeps (mode 0600).
    """
    password = os.environ.get("DEMO_PASSWORD") or _kept()
    user, _ = get_user_model().objects.get_or_create(username=NAME)
    if not (user.is_active and user.is_superuser and user.check_password(password)):
        user.is_active = user.is_staff = user.is_superuser = True
        user.set_password(password)
        user.save()
    return NAME, password


def _kept() -> str:
    path = lab_dir() / "demo-password"
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # two at once agree on one
        password = file.read().strip()
        if not password:  # new, or its maker died before it had written it
            password = secrets.token_urlsafe(9)
            file.write(password)
    return password
