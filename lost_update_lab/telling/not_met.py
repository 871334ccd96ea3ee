"""Why a fault could not happen in any schedule of a search."""

from __future__ import annotations

from lost_update_lab.model.bounds import Fault

WHY_NOT = {
    Fault.CRASH: "each operation is one command: a crash before it, or after it, leaves nothing half done",
    Fault.PAUSE: "nothing there ends by itself while a worker stands still: no lease, no time-out",
    Fault.RENEWAL_DIES: "no worker has a second thread",
    Fault.RENEWAL_LIVES: "no worker has a second thread",
    Fault.FAILOVER: "nothing is kept on a server that fails over",
    Fault.LOST_REPLY: "no command has a reply that could be lost",
    Fault.CLOCK_JUMP: "no worker looks at a wall clock",
}
