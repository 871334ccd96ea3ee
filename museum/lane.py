"""A process in which cases run: servers of its own, and the museum's Django project on them."""

from __future__ import annotations

import logging
import os

import django

from lost_update_lab.under_test.servers import DATABASE, REDIS, embedded


def begin() -> None:
    """Once in a process, before a case is imported."""
    for name in (DATABASE, REDIS):
        os.environ[name] = embedded(name)
    os.environ["DJANGO_SETTINGS_MODULE"] = "museum.settings"
    django.setup()
    logging.disable(logging.ERROR)  # that an operation fails is a result here, and no news
