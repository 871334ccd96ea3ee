"""Give WAIT and WAITAOF a real replica and a real disk to wait for, but only for locks that use them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from loadtest.servers import Valkey
from lost_update_lab.harness import Harness
from lost_update_lab.schedule.schedule_id import exactly
from lost_update_lab.servers.redis.server import RedisServer


@contextmanager
def confirming(harness: Harness, port: int) -> Iterator[None]:
    """Run one schedule. If it waits for a replica or the disk, give the primary at `port` one."""
    harness.until_known(partial(harness.run, exactly(()), {}))
    primary = next(s for s in harness.servers.values() if isinstance(s, RedisServer))
    with ExitStack() as stack:
        if "WAITAOF" in primary.confirming:
            primary.ask("CONFIG", "SET", "appendfsync", "always")
            primary.ask("CONFIG", "SET", "appendonly", "yes")
            stack.callback(primary.ask, "CONFIG", "SET", "appendonly", "no")
        if "WAIT" in primary.confirming:
            replica = stack.enter_context(Valkey(config={"replicaof": ("127.0.0.1", port)}))
            with replica.client() as client:
                while client.info("replication")["master_link_status"] != "up":
                    pass
            primary.replica.processes.append(replica.pid)
            stack.callback(primary.replica.processes.clear)
            stack.callback(replica.resume)
        primary.watch()  # the replica's link is not a client
        yield
