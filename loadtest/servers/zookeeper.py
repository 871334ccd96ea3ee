"""ZooKeeper from Debian's package `zookeeper`, as a child process: its jar in a Java runtime."""

import shutil
import socket
from pathlib import Path
from typing import Any

from lost_update_lab.embedded.base import EmbeddedServer, Unavailable
from lost_update_lab.embedded.ports import free_port

JAR = Path("/usr/share/java/zookeeper.jar")
LOGGING = Path("/usr/share/java/slf4j-simple.jar")  # to standard error, which is our log file
#: small and quick to start, which is enough for the lab
JAVA_OPTIONS = [
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dzookeeper.admin.enableServer=false",
]


def available() -> str | None:
    """Return None if ZooKeeper can be started here, or the reason why not."""
    missing = [] if JAR.exists() else ["zookeeper"]
    missing += [] if shutil.which("java") else ["default-jre-headless"]
    return f"install {' '.join(missing)}" if missing else None


class ZooKeeper(EmbeddedServer):
    """One standalone server on a loopback port, which it keeps over restarts.

    `tick_ms` is its unit of time: a session times out after 2 ticks at the earliest. `config`: further lines.
    """

    name = "zookeeper"
    start_timeout = 60.0

    def __init__(
        self, data: Path | str | None = None, *, tick_ms: int = 100, config: dict[str, Any] | None = None
    ) -> None:
        if reason := available():
            raise Unavailable(reason)
        super().__init__(data)
        self.port = free_port()
        self.config = {
            "dataDir": self.data,
            "clientPort": self.port,
            "clientPortAddress": "127.0.0.1",
            "tickTime": tick_ms,
            "minSessionTimeout": 2 * tick_ms,
            "maxSessionTimeout": 60_000,
            "maxClientCnxns": 0,
            **(config or {}),
        }

    @property
    def url(self) -> str:
        """The address, for kazoo's `hosts`."""
        return f"127.0.0.1:{self.port}"

    def prepare(self) -> None:
        super().prepare()
        lines = "".join(f"{key}={value}\n" for key, value in self.config.items())
        (self.run / "zoo.cfg").write_text(lines)

    def command(self) -> list[str]:
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return ["java", *JAVA_OPTIONS, "-cp", f"{JAR}:{LOGGING}", main, str(self.run / "zoo.cfg")]

    def answers(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
            connection.sendall(b"srvr")
            return b"Mode: standalone" in connection.makefile("rb").read()
