"""What a thread is told of its command, and what its state holds of that: the same for real code, for recorded steps,
and in memory."""

from __future__ import annotations

from psycopg.pq import TransactionStatus

from lost_update_lab.gates.postgres.describe import is_refused
from lost_update_lab.model.commands import ENDS, Op
from lost_update_lab.model.memoised_server import Who
from lost_update_lab.model.workers import Task
from lost_update_lab.schedule import pending, refusals
from lost_update_lab.schedule.world import World
from lost_update_lab.servers.postgres.memoised import MemoisedPostgres
from lost_update_lab.servers.postgres.server import PostgresServer


def tell(world: World, task: Task, op: Op, reply: bytes, shown: str, error: str = "") -> None:
    task.history.add(op.identity, shown.encode() if error else reply)
    task.timed |= op.timed
    if is_refused(op, reply, error):
        refusals.note(world, task)
    pending.tell(world, task, op, shown)
    pending.hear(world, task, ("error", shown) if error else reply)


def meets(
    task: Task, who: Who, op: Op, server: PostgresServer | MemoisedPostgres, status: int, all_counts: bool
) -> None:
    """What is committed decides what a command writes or locks, for as long as its transaction is open. Where more than
    the usual isolation was asked for, what was seen counts for each command, even beyond the end: a transaction that
    has ended may make another one fail. And the session may remember it (a cursor that is held)."""
    if op.local or (op.text in ENDS and not all_counts):
        return
    if (all_counts and status != TransactionStatus.IDLE) or op.lasts:
        task.history.add(server.contents())
    elif not op.reads and status != TransactionStatus.IDLE:
        task.history.meets(who, server.contents(), server.clock.asked(op, who).identity)


def lose(world: World, task: Task, who: Who) -> None:
    task.history.is_out(who)
    world.record(task.worker.name, task.name, "lost-reply", "the reply is lost", "connection lost")
    task.history.add(b"lost")
    pending.hear(world, task, "lost")
