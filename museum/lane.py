"""A process in which cases run: servers of its own, and the museum's Django project on them."""

from __future__ import annotations

import logging
import os
from multiprocessing import parent_process
from threading import Thread

import django

from lost_update_lab.under_test.servers import DATABASE, REDIS, embedded


def begin() -> None:
    """Once in a process, before a case is imported."""
    Thread(target=_end_with_parent, daemon=True).start()
    for name in (DATABASE, REDIS):
        os.environ[name] = embedded(name)
    os.environ["DJANGO_SETTINGS_MODULE"] = "museum.settings"
    django.setup()
    logging.disable(logging.ERROR)  # that an operation fails is a result here, and no news


def _end_with_parent() -> None:
    """A pool's process would wait for its next task for ever when its parent was killed; and its servers with it."""
    if parent := parent_process():
        parent.join()
        os._exit(1)
