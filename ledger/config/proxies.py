"""Who calls, when a proxy stands in front: X-Forwarded-For is believed as far as trusted proxies have written it.

X-Forwarded-For: 6.6.6.6, 203.0.113.9, 10.0.0.2   REMOTE_ADDR: 10.0.0.1   TRUSTED_PROXIES=10.0.0.0/8
                 sent by  ↑ the client,            ← read from the right, over trusted proxies
                 the client, so nobody's
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest

Network = IPv4Network | IPv6Network
#: the network that one IPv6 customer gets: its addresses are as many as its owner likes
IPV6_CUSTOMER = 64


def networks(addresses: Iterable[str]) -> list[Network]:
    """Return the networks that TRUSTED_PROXIES names. Raises ImproperlyConfigured, which says what one looks like."""
    try:
        return [ip_network(each) for each in addresses]
    except ValueError as error:
        raise ImproperlyConfigured(
            f"TRUSTED_PROXIES: {error}. Name addresses or networks, such as 10.0.0.7,172.16.0.0/12"
        ) from error


def client_address(request: HttpRequest) -> str | None:
    """Return the caller's address, or the network of an IPv6 caller. None: it came by a unix socket."""
    hops = [hop.strip() for hop in request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")]
    client = None
    for hop in [request.META.get("REMOTE_ADDR", ""), *reversed(hops)]:
        try:
            address = ip_address(hop)
        except ValueError:
            break  # not written by a proxy of ours
        if isinstance(address, IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        client = address
        if not any(address in network for network in settings.TRUSTED_PROXIES):
            break
    if isinstance(client, IPv6Address):
        return str(IPv6Network((client, IPV6_CUSTOMER), strict=False).network_address)
    return None if client is None else str(client)
