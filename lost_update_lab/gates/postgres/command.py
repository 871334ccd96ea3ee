"""A command to PostgreSQL as it was recorded: replayed on the server, or answered in memory."""

from __future__ import annotations

from collections.abc import Generator, Hashable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import IsolationLevel
from psycopg.pq.abc import PGresult

from lost_update_lab.gates.postgres import in_memory
from lost_update_lab.gates.postgres.describe import Send, sent
from lost_update_lab.gates.postgres.step import begin, execute
from lost_update_lab.memo.recording import Recording
from lost_update_lab.model.commands import Op
from lost_update_lab.model.errors import Unknown
from lost_update_lab.model.workers import Standing, Task
from lost_update_lab.schedule.world import World
from lost_update_lab.servers.postgres import levels
from lost_update_lab.servers.postgres.server import POSTGRES, PostgresServer


@dataclass(slots=True)
class PostgresCommand:
    """A command as it was recorded. `name`: the connection's, by its thread and its place among those of the thread.
    `begins`: it is psycopg's own BEGIN before a command. `tells`: its reply is told to the worker."""

    name: tuple[int, int]
    op: Op
    isolation: IsolationLevel | None
    begins: bool = False
    tells: bool = False
    send: Send | None = None

    def same(self) -> Hashable:
        return self.name, self.op.identity, self.op.text, self.isolation, self.begins, self.tells

    def play(self, world: World, task: Task, recording: Recording) -> Standing:
        sessions, used = task.worker.sessions.setdefault(POSTGRES, {}), task.uses.setdefault(POSTGRES, [])
        if self.name[1] == len(used):
            used.append(recording.connection(task.worker, POSTGRES, lambda one: one not in sessions))
        connection = used[self.name[1]]
        if self.send is None or (connection not in sessions and connection.closed):
            raise Unknown(task.worker.index)
        sessions[connection], connection.explorer_isolation = task, self.isolation
        connection.explorer_who = task.worker.index, *self.name
        server = world.servers[POSTGRES]
        assert isinstance(server, PostgresServer)
        levels.begins_at(connection, server.level, self.op.text)
        results: list[list[PGresult]] = []
        steps = _noted(sent(connection.pgconn, self.send), results)
        if self.begins:
            yield from begin(world, task, connection, self.op, steps)
            return
        with suppress(psycopg.Error):
            told = (lambda: results[0]) if self.tells else None
            yield from execute(world, task, connection, self.op, steps, told)

    def stand(self, world: World, task: Task) -> None:
        in_memory.stand(world, task, (task.worker.index, *self.name), self.op, self.isolation)

    def turn(self, world: World, task: Task, recording: Recording) -> None:
        in_memory.turn(world, task, (task.worker.index, *self.name), self.op, self.begins, self.tells)


def _noted(
    gen: Generator[Any, Any, list[PGresult]], results: list[list[PGresult]]
) -> Generator[Any, Any, None]:
    results.append((yield from gen))
