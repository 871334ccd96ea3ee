"""A replica that falls behind has confirmed what it has got: what a WAIT hears does not depend on the second."""

from __future__ import annotations

from collections.abc import Callable

from loadtest.servers import Valkey
from lost_update_lab.servers.redis.server import RedisServer


def test_what_was_written_before_the_lag_is_confirmed(valkey_server: Callable[..., Valkey]) -> None:
    primary = valkey_server(port=0)
    replica = valkey_server(config={"replicaof": ("127.0.0.1", primary.port)})
    with primary.client() as client, replica.client() as follower:
        while follower.info("replication")["master_link_status"] != "up":
            pass
        server = RedisServer(primary.url)
        server.replica.processes.append(replica.pid)
        try:
            server.begin()
            client.set("lock", "A")
            server.lag()
            assert client.wait(1, 500) == 1
            client.set("lock", "B")
            assert client.wait(1, 50) == 0, "the control: it stands still"
            assert b"explorer" not in server.contents()
        finally:
            replica.resume()
            server.close()
