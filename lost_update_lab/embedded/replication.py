"""Valkey with replicas and sentinels. A primary that fails is replaced, and what only it knew is lost.

    client → primary: SET lock …  → OK        the answer does not wait for the replicas
    primary dies · the sentinels agree · a replica is promoted
    another client → new primary: SET lock …  → OK        both hold the lock

To lose a key for certain: `sever`, write, `kill` the primary, then `resume` the replicas.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel as SentinelClient

from lost_update_lab.embedded.base import ServerError, start_together, tail
from lost_update_lab.embedded.valkey import Valkey

PRIMARY_NAME = "lab"  # what the sentinels call the primary
#: how often a sentinel does these things, in ms. The defaults are 1 to 10 s. Only the waiting is shorter.
PERIODS = {
    "publish-period": 100,
    "info-period": 100,
    "ask-period": 100,
    "ping-period": 100,
    # For so long a sentinel starts no failover if it had no processor for 2 s, or its clock jumped. After its default,
    # 30 s, it would promote no replica any more: each was without its primary for too long.
    "tilt-period": 500,
}


class Sentinel(Valkey):
    """One sentinel that watches the primary at `port`."""

    name = "sentinel"

    def __init__(self, primary: Valkey, *, quorum: int, down_after_ms: int) -> None:
        super().__init__(port=0)
        for key in ("save", "appendonly", "appendfsync"):
            del self.config[key]
        self.lines = [
            f"sentinel monitor {PRIMARY_NAME} 127.0.0.1 {primary.port} {quorum}",
            f"sentinel down-after-milliseconds {PRIMARY_NAME} {down_after_ms}",
            # A failover that finds no good replica comes again after twice this time. On a busy machine a replica is
            # no good one if its last answer is older than five ping-periods.
            f"sentinel failover-timeout {PRIMARY_NAME} 2000",
        ]

    def command(self) -> list[str]:
        return [*super().command(), "--sentinel"]

    def write_config(self, path: Path) -> None:
        super().write_config(path)
        with path.open("a") as file:
            file.write("\n".join(self.lines) + "\n")

    def start(self) -> Self:
        super().start()
        with self.client() as client:
            for period, ms in PERIODS.items():
                client.execute_command("SENTINEL", "DEBUG", period, ms)
        return self

    def sees(self) -> dict[str, Any]:
        """Return what it knows about the primary: `ip`, `port`, `flags`, `num-slaves`, `num-other-sentinels`, …"""
        with self.client(decode_responses=True) as client:
            state = client.execute_command("SENTINEL", "MASTER", PRIMARY_NAME)
            return state if isinstance(state, dict) else dict(zip(state[::2], state[1::2], strict=True))


class ReplicaSet:
    """A primary, its replicas, and sentinels that agree on it. Use `start` and `close`, or a `with` block.

    `options` go to each Valkey, such as persistence="always" or config={"min-replicas-to-write": 1}.
    """

    def __init__(
        self, *, replicas: int = 2, sentinels: int = 3, down_after_ms: int = 300, **options: Any
    ) -> None:
        config = {"repl-ping-replica-period": 1} | options.pop("config", {})
        first = Valkey(port=0, config=config, **options)
        follow = config | {"replicaof": ("127.0.0.1", first.port)}
        self.servers = [first, *(Valkey(port=0, config=follow, **options) for _ in range(replicas))]
        quorum = sentinels // 2 + 1
        self.sentinels = [
            Sentinel(first, quorum=quorum, down_after_ms=down_after_ms) for _ in range(sentinels)
        ]

    def start(self) -> Self:
        """Return when the replicas follow, and all sentinels know the primary, its replicas and each other."""
        start_together(self.servers)
        self.await_replication()
        start_together(self.sentinels)
        self.await_agreement(self.servers[0])
        return self

    def close(self) -> None:
        for server in (*self.sentinels, *self.servers):
            with suppress(ServerError):  # it had to be killed; the others must end too
                server.close()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def primary(self) -> Valkey:
        """The server that most sentinels name as the primary now."""
        ports = [int(sentinel.sees()["port"]) for sentinel in self.sentinels if sentinel.running]
        return self._by_port(max(ports, key=ports.count))

    @property
    def replicas(self) -> list[Valkey]:
        """All other servers, even those that do not run."""
        primary = self.primary
        return [server for server in self.servers if server is not primary]

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """(host, port) of each sentinel, for redis-py's Sentinel. The primary's name is NAME."""
        return [("127.0.0.1", sentinel.port or 0) for sentinel in self.sentinels]

    def client(self, **options: Any) -> redis.Redis:
        """Return a client that asks the sentinels for the primary at each new connection. It never re-sends."""
        options = {"retry": Retry(NoBackoff(), 0), "decode_responses": False, "socket_timeout": 2} | options
        sentinels: Any = SentinelClient  # redis-py leaves it without types
        client: redis.Redis = sentinels(self.addresses, socket_timeout=1).master_for(PRIMARY_NAME, **options)
        return client

    def sever(self) -> None:
        """From now on no write of the primary reaches a replica, until the replicas `resume`.

        Pausing the replicas is not enough: the kernel goes on receiving for them, and a replica that resumes after the
        primary's death finds the write in its socket. So the primary hangs up as well.
        """
        primary = self.primary
        for server in self.servers:
            if server is not primary:
                server.pause()
        with primary.client() as client:
            client.execute_command("CLIENT", "KILL", "TYPE", "replica")

    def await_replication(self, timeout: float = 15) -> None:
        """Wait until each running replica has all that the primary has."""
        running = [server for server in self.servers if server.running]

        def caught_up() -> bool:
            infos = [server.info("replication") for server in running]
            primaries = [info for info in infos if info["role"] == "master"]
            followers = [info for info in infos if info["role"] == "slave"]
            return (
                len(primaries) == 1
                and all(info["master_link_status"] == "up" for info in followers)
                and {info["slave_repl_offset"] for info in followers} <= {primaries[0]["master_repl_offset"]}
            )

        self._wait(caught_up, timeout, "the replicas did not catch up")

    def await_agreement(self, primary: Valkey, timeout: float = 15) -> None:
        """Wait until all running sentinels name `primary` and know its replicas and each other."""

        def agreed(sentinel: Sentinel) -> bool:
            state = sentinel.sees()
            return (
                int(state["port"]) == primary.port
                and state["flags"] == "master"
                and int(state["num-slaves"]) == len(self.servers) - 1
                and int(state["num-other-sentinels"]) == len(self.sentinels) - 1
            )

        watching = [sentinel for sentinel in self.sentinels if sentinel.running]
        self._wait(lambda: all(map(agreed, watching)), timeout, "the sentinels did not agree")

    def await_failover(self, old: Valkey, timeout: float = 60) -> Valkey:
        """Wait until each running sentinel names another primary, which takes writes, and return that one."""

        def promoted() -> bool:
            ports = {int(sentinel.sees()["port"]) for sentinel in self.sentinels if sentinel.running}
            return (
                len(ports) == 1
                and ports != {old.port}
                and self._by_port(next(iter(ports))).info("replication")["role"] == "master"
            )

        self._wait(promoted, timeout, "no replica was promoted")
        return self.primary

    def _by_port(self, port: int) -> Valkey:
        return next(server for server in self.servers if server.port == port)

    def _wait(self, condition: Callable[[], bool], timeout: float, failure: str) -> None:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            with suppress(redis.RedisError):
                if condition():
                    return
            time.sleep(0.02)
        logs = "\n".join(tail(server.log) for server in (*self.sentinels, *self.servers))
        raise ServerError(f"{failure} within {timeout:g} s.\n{logs}")
