"""Guessing a password locks the guesser out for a while, with a message; the name's owner, elsewhere, is not."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from ledger.config.proxies import networks
from tests.site.page_rules import breaches

pytestmark = pytest.mark.usefixtures("committed_db", "quiet", "quick_hasher")
PASSWORD = "correct horse battery staple"  # pragma: allowlist secret


@pytest.fixture
def quick_hasher(settings) -> None:
    """Passwords are checked some twenty times here, and what is tested is how often."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


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


def guesses(client: Client, count: int, **where: str) -> list[int]:
    """Each under another name."""
    return [login(client, f"u-{uuid.uuid4()}", "wrong", **where).status_code for _ in range(count)]


def test_guesses_from_one_address_are_limited_under_whatever_names(settings) -> None:
    settings.LOGIN_ATTEMPTS_PER_ADDRESS = 3
    name = f"u-{uuid.uuid4()}"
    User.objects.create_superuser(name, password=PASSWORD)
    client, here, there = Client(headers={"host": "localhost"}), "203.0.113.1", "203.0.113.2"
    assert guesses(client, 2, REMOTE_ADDR=here) == [200, 200]
    assert login(client, name, PASSWORD, REMOTE_ADDR=here).status_code == 302  # clears nobody else's guesses
    assert guesses(client, 2, REMOTE_ADDR=here) == [429, 429]
    assert login(client, name, PASSWORD, REMOTE_ADDR=here).status_code == 429
    assert login(client, name, PASSWORD, REMOTE_ADDR=there).status_code == 302


def test_behind_a_trusted_proxy_one_caller_does_not_lock_out_another(settings) -> None:
    settings.LOGIN_ATTEMPTS_PER_ADDRESS = 2
    settings.TRUSTED_PROXIES = networks(["198.51.100.0/30"])
    client, proxy = Client(headers={"host": "localhost"}), {"REMOTE_ADDR": "198.51.100.1"}
    assert guesses(client, 2, HTTP_X_FORWARDED_FOR="203.0.113.11", **proxy) == [200, 429]
    assert guesses(client, 1, HTTP_X_FORWARDED_FOR="203.0.113.12", **proxy) == [200]
    lies = "203.0.113.99, 203.0.113.11"  # of the client; the proxy appends whom it saw
    assert guesses(client, 1, HTTP_X_FORWARDED_FOR=lies, **proxy) == [429]


def test_whoever_is_no_trusted_proxy_cannot_pretend_to_be_many(settings) -> None:
    settings.LOGIN_ATTEMPTS_PER_ADDRESS = 2
    client = Client(headers={"host": "localhost"})
    answers = [
        guesses(client, 1, REMOTE_ADDR="203.0.113.21", HTTP_X_FORWARDED_FOR=f"10.0.0.{n}") for n in range(2)
    ]
    assert answers == [[200], [429]]


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
