"""The opening state of a case: the tables of its own models, and what its setup puts there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import redis
from django.apps import apps
from django.conf import settings
from django.db import connection, models

from museum.registry import Exhibit


def models_of(exhibit: Exhibit) -> Sequence[type[models.Model]]:
    """In the order in which the file defines them."""
    ours = apps.get_app_config("museum").get_models()
    return [each for each in ours if each.__module__ == exhibit.module.__name__]


def open_(exhibit: Exhibit) -> None:
    """Create the tables, and fill them. The explorer drops them afterwards."""
    with connection.schema_editor() as editor:
        for each in models_of(exhibit):
            editor.create_model(each)
    exhibit.case.setup()


@contextmanager
def opened(exhibit: Exhibit) -> Iterator[None]:
    """The same without the explorer: the tables are there meanwhile."""
    open_(exhibit)
    try:
        yield
    finally:
        with connection.schema_editor() as editor:
            for each in reversed(models_of(exhibit)):
                editor.delete_model(each)
        _forget_keys()


def renew(exhibit: Exhibit) -> None:
    """The tables hold what they held when they were opened."""
    names = [connection.ops.quote_name(each._meta.db_table) for each in models_of(exhibit)]
    if names:
        with connection.cursor() as cursor:
            cursor.execute(f"TRUNCATE {', '.join(names)} RESTART IDENTITY CASCADE")
    _forget_keys()
    exhibit.case.setup()


def _forget_keys() -> None:
    with redis.Redis.from_url(str(settings.CACHES["default"]["LOCATION"])) as client:
        client.flushall()
