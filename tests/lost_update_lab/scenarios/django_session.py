"""A session that the setup has made, valid for two weeks, as a script: two requests change it. Prints the verdict."""

from __future__ import annotations

from django.conf import settings

import tests.lost_update_lab.wallet as project

settings.SECRET_KEY = "of a test"  # pragma: allowlist secret
project.django.apps.apps.set_installed_apps(["django.contrib.sessions"])

from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.contrib.sessions.models import Session  # noqa: E402
from django.db import connection  # noqa: E402

from lost_update_lab import explore, worker  # noqa: E402

KEYS: list[str] = []


def signed_in() -> None:
    with connection.schema_editor() as editor:
        editor.create_model(Session)
    session = SessionStore()
    session["cart"] = []
    session.save()
    KEYS.append(session.session_key)
    connection.close()


def add(what: str) -> None:
    session = SessionStore(KEYS[-1])
    session["cart"] = [*session["cart"], what]
    session.save()


workers = [worker("A", add, "pear"), worker("B", add, "plum")]
result = explore(workers, setup=signed_in, django=True, disposable=True)
print(result.verdict, result.exhausted)
