"""Guessing a password locks the guesser out for a while, with a message; the name's owner, elsewhere, is not."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.site.page_rules import breaches

pytestmark = pytest.mark.usefixtures("committed_db", "quiet")
PASSWORD = "correct horse battery staple"  # pragma: allowlist secret


def login(client: Client, name: str, password: str, **where: str) -> Any:
    return client.post("/admin/login/?next=/admin/", {"username": name, "password": password}, **where)


def test_guesses_are_limited(settings) -> None:
    name = f"u-{uuid.uuid4()}"
    User.objects.create_superuser(name, password=PASSWORD)
    client = Client(headers={"host": "localhost"})
    for _ in range(settings.AXES_FAILURE_LIMIT - 1):
        assert login(client, name, "wrong").status_code == 200
    refused = login(client, name, "wrong")
    assert refused.status_code == 429
    assert "five minutes" in refused.content.decode()
    assert not breaches(refused["Content-Security-Policy"], refused.content.decode())
    assert login(client, name, PASSWORD).status_code == 429  # the guess may be right now: it does not help
    assert (
        login(Client(headers={"host": "localhost"}), name, PASSWORD, REMOTE_ADDR="10.0.0.9").status_code
        == 302
    )


def test_a_correct_password_resets_the_count_of_failures(settings) -> None:
    name = f"u-{uuid.uuid4()}"
    User.objects.create_superuser(name, password=PASSWORD)
    client = Client(headers={"host": "localhost"})
    for _ in range(2):
        for _ in range(settings.AXES_FAILURE_LIMIT - 1):
            login(client, name, "wrong")
        assert login(client, name, PASSWORD).status_code == 302


@pytest.mark.parametrize(
    "address",
    [
        "/admin/ledger/book/00000000-0000-0000-0000-000000000000/change/",
        "/admin/ledger/book/00000000-0000-0000-0000-000000000000/accounts/A1/losses/",
        "/admin/ledger/importrun/999999/change/",
        "/admin/loadtest/trial/999999/change/",
    ],
)
def test_a_user_without_rights_does_not_learn_what_exists(address: str) -> None:
    client = Client(headers={"host": "localhost"})
    client.force_login(User.objects.create_user(f"u-{uuid.uuid4()}", is_staff=True))
    assert client.get(address).status_code == 403
    client.force_login(User.objects.create_superuser(f"u-{uuid.uuid4()}"))
    assert client.get(address).status_code == 404
