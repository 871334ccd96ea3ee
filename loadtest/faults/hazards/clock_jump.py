"""clock-jump: the wall clock of one Valkey, or of clients, jumps by a minute while a worker is inside.

    clock-jump               the server's clock jumps forward: its keys expire at once
    clock-jump-back          the server's clock jumps back: its keys live a minute longer
    clock-jump-client        the clock of a client that wants to get in jumps forward: it believes a lease is over
    clock-jump-client-back   the clock of the worker inside has jumped back: its lease looks as if it was over

libfaketime moves the clock of the real process. Monotonic clocks are unaffected. Of a majority's nodes, one jumps.

Proof        the server's TIME, or the client's time.time(), compared with ours while a worker is inside.
Cannot touch (a server's clock) a strategy that uses no Valkey.
Cleans up    the server, and the clients with the moved clock, belong to the party.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, ClassVar

from loadtest.faults.hazards.adversary import PARTY_ENTERS, Party
from loadtest.faults.scene.scene import EASY_LEASE
from loadtest.faults.workers.crew import Pool
from loadtest.servers import Valkey
from locks.hazards import Hazard
from lost_update_lab.embedded.clock import ProcessClock, available
from lost_update_lab.embedded.reaper import REAPER

if TYPE_CHECKING:
    from loadtest.faults.scene.scene import Scene
    from loadtest.faults.scene.site import Site
    from loadtest.faults.workers.crew import CrewWorker

JUMP = 60.0  # seconds


class ClockJump(Party):
    slug = "clock-jump"
    lasts = 11.0
    word = Hazard.CLOCK_JUMP
    own_valkey = True
    lease = EASY_LEASE
    jump: ClassVar[float] = JUMP

    def missing(self) -> tuple[str, str] | None:
        why = available()
        return (f"no libfaketime: {why}", f"apt-get {why}") if why else None

    @contextmanager
    def site(self, shared: Site) -> Iterator[Site]:
        with ExitStack() as stack:
            server = stack.enter_context(Valkey(port=0, persistence="always", clock=True))
            stack.enter_context(Valkey(config={"replicaof": ("127.0.0.1", server.port)}))
            yield shared.with_valkey(server)

    def event(self, site: Site) -> str:
        site.valkey.set_clock(self.jump)
        with site.redis() as client:
            off = client.time()[0] - time.time()
        return f"Valkey's clock is off by {off:+.0f} s" if abs(off - self.jump) < 5 else ""


class ClockJumpBack(ClockJump):
    slug = "clock-jump-back"
    jump = -JUMP


class ClockJumpClient(ClockJump):
    slug = "clock-jump-client"
    party = 16  # each party starts a new parent process for its workers
    own_valkey = False

    @contextmanager
    def site(self, shared: Site) -> Iterator[Site]:
        """Yield the same servers. `self.others` are workers whose clock can be moved."""
        with TemporaryDirectory(prefix="lab-clock-") as folder, REAPER.clears(folder):
            self.clock = ProcessClock(Path(folder) / "clock")
            self.others = Pool(self.clock.environment())
            try:
                yield shared
            finally:
                self.others.close()

    def strike(self, scene: Scene) -> None:
        self.occasion.meet(lambda: None)
        odd = scene.hire(pool=self.others)
        victim = scene.victim(PARTY_ENTERS)
        at = self.moved(scene, odd)
        if (
            scene.posts(odd) and victim
        ):  # the worker with the wrong clock wants to get in while another is inside
            self.told(scene, at)
        scene.wait([odd], 0.8)
        scene.ahead(0.3)
        if victim:
            scene.go_on(victim)

    def moved(self, scene: Scene, odd: CrewWorker) -> float:
        """Move the clock of the odd worker of every cell. Return the time that it now shows."""
        self.occasion.meet(lambda: self.clock.set(self.jump))
        scene.clocks[str(odd.pid)] = self.jump
        return float(odd.asks("call", "clock"))

    def told(self, scene: Scene, at: float) -> None:
        off = at - time.time()
        if abs(off - self.jump) < 5:
            scene.fault(f"the clock of one client is off by {off:+.0f} s")
            scene.prove(f"the client's clock is off by {off:+.0f} s")


class ClockJumpClientBack(ClockJumpClient):
    slug = "clock-jump-client-back"
    jump = -JUMP

    def strike(self, scene: Scene) -> None:
        odd = scene.hire(pool=self.others)
        at = self.moved(scene, odd)
        victim = scene.victim(PARTY_ENTERS, odd)
        if victim:
            self.told(scene, at)
        scene.ahead(0.5)
        if victim:
            scene.go_on(victim)
