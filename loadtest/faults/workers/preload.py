"""Imported once by the process from which the workers are forked, so that they have at once what they need."""

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

#: reads the metadata of every installed package: 20 ms or more, which each worker would otherwise spend
known()
