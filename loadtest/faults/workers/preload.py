"""Imported once by the process from which the workers are forked: what they need is then there at once."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ledger.settings")
django.setup()

import django_redis.cache  # noqa: E402
import django_redis.client  # noqa: E402, F401

import ledger.books  # noqa: E402
import ledger.config.routers  # noqa: E402, F401
import loadtest.faults.workers.worker  # noqa: E402, F401
from ledger.strategies import known  # noqa: E402

#: reads what every installed package says of itself: 20 ms and more, which each worker would spend for itself
known()
