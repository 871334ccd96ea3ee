"""What a Django process keeps, as a script: the pool of its database, a cache of django-redis, ContentTypes. Prints the
verdicts."""

from __future__ import annotations

import os

from django.conf import settings

import tests.lost_update_lab.wallet as project

settings.CACHES = {
    "default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": os.environ["REDIS_URL"]}
}
settings.INSTALLED_APPS = ["django.contrib.contenttypes"]
project.django.apps.apps.set_installed_apps(settings.INSTALLED_APPS)

from django.contrib.contenttypes.models import ContentType  # noqa: E402
from django.core.cache import cache  # noqa: E402
from django.db import connection  # noqa: E402

from lost_update_lab import explore, worker  # noqa: E402


def opened() -> None:
    with connection.schema_editor() as editor:
        editor.create_model(ContentType)
    project.open_wallet()
    cache.set("count", 0, timeout=None)
    connection.close()


def withdraw(amount: int) -> None:
    wallet = project.Wallet.objects.get(id=1)
    wallet.balance -= amount
    wallet.save()


def count(amount: int) -> None:
    cache.set("count", cache.get("count") + amount, timeout=None)


def count_at_once(amount: int) -> None:
    cache.incr("count", amount)


def of_its_type(amount: int) -> None:
    """Asked once in a process; each worker is one that has just begun."""
    ContentType.objects.get_for_model(project.Wallet)
    project.withdraw_locked(amount)


for operation in (withdraw, project.withdraw_locked, count, count_at_once, of_its_type):
    workers = [worker("Ann", operation, 10), worker("Bob", operation, 20)]
    result = explore(workers, setup=opened, django=True, disposable=True)
    print(operation.__name__, result.verdict, result.exhausted, result.cause)
