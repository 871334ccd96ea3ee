"""A command to PostgreSQL where no server is asked: a thread stands before it, and is told what is known."""

from __future__ import annotations

from psycopg import IsolationLevel
from psycopg.pq import TransactionStatus

from lost_update_lab.gates.postgres.told import lose, meets, tell
from lost_update_lab.model.commands import Op
from lost_update_lab.model.memoised_server import Who
from lost_update_lab.model.workers import Task
from lost_update_lab.schedule import pending
from lost_update_lab.schedule.world import World
from lost_update_lab.servers.postgres.memoised import Looked, MemoisedPostgres
from lost_update_lab.servers.postgres.server import POSTGRES


def stand(world: World, task: Task, who: Who, op: Op, isolation: IsolationLevel | None) -> None:
    server = world.servers[POSTGRES]
    assert isinstance(server, MemoisedPostgres)
    task.worker.sessions.setdefault(POSTGRES, {})[who] = task
    server.uses(who, isolation)
    pending.stand(world, task, op)


def turn(world: World, task: Task, who: Who, op: Op, begins: bool, tells: bool) -> None:
    """`begins`, `tells`: as in PostgresCommand. Raises Unanswered."""
    server = world.servers[POSTGRES]
    assert isinstance(server, MemoisedPostgres)
    session = server.session(who)
    if session.waits:
        task.loses_reply |= bool(task.op and task.op.silent)
        task.history.meets(who, server.contents())
    elif not (begins or session.cut):
        meets(task, who, op, server, session.status, server.answers.sees_all(session.isolation))
    answer = server.answer(who, op, begins, tells)
    if isinstance(answer, Looked):
        task.history.meets(who, server.contents())
        pending.between(world, task, op, answer.place)
        return
    if answer is None:
        task.history.meets(who, server.contents())
        task.session = who
        pending.block(world, task)
        return
    if begins:
        pending.tell(world, task, op, "")
        pending.hear(world, task, b"")
        return
    if answer.session.cut or answer.session.status == TransactionStatus.IDLE:
        task.history.is_out(who)
    task.worker.commits += answer.touched
    tell(world, task, op, answer.reply, answer.shown, answer.error)
    if task.loses_reply and not answer.error:
        server.end_sessions([who])
        server.cut(who)
        lose(world, task, who)
