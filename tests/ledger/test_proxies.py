"""Whose address a caller has, for all that X-Forwarded-For may hold."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import RequestFactory

from ledger.config.proxies import client_address, networks


@pytest.mark.parametrize(
    ("trusted", "peer", "forwarded", "client"),
    [
        ("", "203.0.113.5", "", "203.0.113.5"),
        ("", "203.0.113.5", "1.1.1.1", "203.0.113.5"),
        ("10.0.0.1", "203.0.113.5", "1.1.1.1", "203.0.113.5"),
        ("10.0.0.1", "10.0.0.1", "1.1.1.1", "1.1.1.1"),
        ("10.0.0.0/8", "10.0.0.1", "6.6.6.6, 1.1.1.1 ,10.0.0.2", "1.1.1.1"),
        ("10.0.0.0/8", "10.0.0.1", "10.0.0.3", "10.0.0.3"),
        ("10.0.0.0/8", "10.0.0.1", "6.6.6.6, unknown", "10.0.0.1"),
        ("10.0.0.0/8", "10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.0/8", "::ffff:10.0.0.1", "::ffff:1.1.1.1", "1.1.1.1"),
        ("::1", "::1", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("10.0.0.0/8", "", "1.1.1.1", None),
    ],
)
def test_the_address_of_a_caller(
    settings, trusted: str, peer: str, forwarded: str, client: str | None
) -> None:
    settings.TRUSTED_PROXIES = networks(each for each in trusted.split(",") if each)
    headers = {"HTTP_X_FORWARDED_FOR": forwarded} if forwarded else {}
    assert client_address(RequestFactory().get("/", REMOTE_ADDR=peer, **headers)) == client


def test_a_network_with_bits_of_a_host_is_refused_with_what_to_write() -> None:
    with pytest.raises(
        ImproperlyConfigured, match=r"TRUSTED_PROXIES: 10\.0\.0\.1/8 has host bits set\. Name addresses"
    ):
        networks(["10.0.0.1/8"])
