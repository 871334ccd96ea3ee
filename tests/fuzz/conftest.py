"""How many bad inputs: a few dozen of the same ones within the tests, thousands of new ones by `make fuzz`."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client
from hypothesis import HealthCheck, settings

CHECKS = list(HealthCheck)
settings.register_profile(
    "short",
    max_examples=25,
    stateful_step_count=10,
    deadline=None,
    derandomize=True,
    suppress_health_check=CHECKS,
)
settings.register_profile(
    "fuzz",
    max_examples=2000,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=CHECKS,
    print_blob=True,
)


@pytest.fixture(autouse=True)
def profile(
    request: pytest.FixtureRequest, committed_db: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[settings]:
    """`--hypothesis-profile=fuzz`, or the short one. The API is open, whatever the environment says."""
    monkeypatch.setattr("django.conf.settings.API_TOKEN", "")
    logging.disable(logging.CRITICAL)
    yield settings.get_profile(request.config.getoption("--hypothesis-profile") or "short")
    logging.disable(logging.NOTSET)


@pytest.fixture
def client(profile: settings) -> Client:
    """A client that is answered 500 where a person would be; its user may do everything."""
    made = Client(headers={"host": "localhost"}, raise_request_exception=False)
    made.force_login(User.objects.create_superuser(f"fuzz-{uuid.uuid4()}"))
    return made
