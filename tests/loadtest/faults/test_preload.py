"""What a worker of the matrix needs is there before it is forked: otherwise each worker loads it again."""

import subprocess
import sys

from ledger.addresses import BASE_DIR

FIRST = """
import importlib.metadata, sys
import loadtest.faults.workers.preload
there = set(sys.modules)
importlib.metadata.entry_points = None  # reads what every installed package says of itself
from ledger.strategies import find
from ledger.books import post
from ledger.resources import resources
from django.db import router
from ledger.models import Book
from django.core.cache import cache
find("token"), router.db_for_read(Book), cache.get
print(sorted(set(sys.modules) - there))
"""


def test_a_worker_loads_nothing_when_it_first_posts() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST], cwd=BASE_DIR, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stdout + done.stderr
