"""The clock of one Valkey moves, and with it the end of a lease."""

from pathlib import Path

import pytest

from loadtest.servers import Unavailable, Valkey
from lost_update_lab.embedded import clock

needs_faketime = pytest.mark.skipif(bool(clock.available()), reason=f"{clock.available()}")


@needs_faketime
def test_a_lease_ends_when_the_clock_says_so(valkey_server):
    server = valkey_server(clock=True)
    other = valkey_server().client()
    client = server.client()
    for each in (client, other):
        each.set("lease", "A", px=3_000_000)
    server.set_clock(2900)
    assert client.get("lease") == b"A"
    server.set_clock(3100)
    assert client.get("lease") is None
    assert other.get("lease") == b"A"  # only that server's clock moved
    assert client.keys() == []  # the probe key is gone


@needs_faketime
def test_a_clock_that_jumps_back_makes_a_lease_longer(valkey_server):
    server = valkey_server(clock=True)
    server.client().set("lease", "A", px=30_000)
    server.set_clock(-60)
    assert 60_000 < server.client().pttl("lease") <= 90_000


@needs_faketime
def test_a_killed_server_leaves_nothing_in_shared_memory(valkey_server):
    server = valkey_server(clock=True)
    pid = server.pid
    server.kill()
    assert not list(Path("/dev/shm").glob(f"*faketime*{pid}"))


def test_without_faketime_the_reason_says_what_to_install(monkeypatch):
    monkeypatch.setattr(clock, "PLACES", ())
    with pytest.raises(Unavailable, match="install faketime"):
        Valkey(clock=True)


def test_a_server_on_the_real_clock_refuses(valkey_server):
    with pytest.raises(ValueError, match=r"clock=True"):
        valkey_server().set_clock(1)
