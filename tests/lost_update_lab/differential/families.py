"""Kinds of programs, as data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from lost_update_lab.model.bounds import Fault
from tests.lost_update_lab.differential import clock_commands as clock
from tests.lost_update_lab.differential import commands as of
from tests.lost_update_lab.differential import operations as run
from tests.lost_update_lab.differential.commands import Part

Faults = tuple[Fault, ...]
CRASH, LOST, PAUSE, JUMP = Fault.CRASH, Fault.LOST_REPLY, Fault.PAUSE, Fault.CLOCK_JUMP
NO_FAULT: Sequence[Faults] = ((),)
#: … and one fault in half of the programs or fewer
OF_SQL: Sequence[Faults] = ((), (), (CRASH,), (LOST,))
OF_CLOCKS: Sequence[Faults] = ((), (), (CRASH,), (LOST,), (PAUSE,), (JUMP,))
ANY: Sequence[Faults] = (*OF_CLOCKS, (Fault.FAILOVER,), (CRASH, LOST))
PG_LEVELS = ("", "READ COMMITTED")
MARIADB_LEVELS = ("", "READ COMMITTED", "REPEATABLE READ")


@dataclass(frozen=True)
class Family:
    """`most`: the commands of one program. `together`: "gather" or "group": the first program of a worker has two
    threads, or two tasks; beside it, there may be a plain worker. `operations`: of each worker, one after another.
    `of_asyncio`: also what only coroutines can do; `with_events`: threads tell each other something. `looks`: parts by
    which a worker looks at its clock; `compares`: parts that compare what it has shown. `faults`: one of these is
    drawn; `count`: so many faults in one schedule. `timed`: its rows hold times, which are others in each run. `seeds`:
    how many programs of it the long test compares."""

    operation: Callable[..., Any]
    setups: Sequence[Callable[..., None]]
    reads: Sequence[Part]
    writes: Sequence[Part]
    locks: Sequence[Part] = ()
    levels: Sequence[str] = ()
    workers: int = 2
    most: int = 2
    operations: int = 1
    together: Sequence[str] = ()
    of_asyncio: bool = False
    with_events: bool = False
    waits: bool = True
    looks: Sequence[Part] = ()
    compares: Sequence[Part] = ()
    faults: Sequence[Faults] = ANY
    count: int = 1
    database: str = ""
    timed: bool = False
    seeds: int = 8


_POSTGRES = Family(
    run.in_postgres,
    (of.two_accounts,),
    of.PG_READS,
    of.PG_WRITES,
    of.PG_LOCKS,
    PG_LEVELS,
    waits=False,
    faults=OF_SQL,
)
_CONSTRAINED = replace(
    _POSTGRES,
    setups=(of.with_constraints, of.with_a_trigger),
    writes=(*of.PG_WRITES, *of.PG_CONSTRAINED, *of.PG_CONSTRAINED),
    levels=("REPEATABLE READ", "SERIALIZABLE", "SERIALIZABLE", "READ COMMITTED"),
    faults=((), *OF_SQL),
)
_TASKS = replace(
    _POSTGRES,
    operation=run.by_tasks,
    levels=(*PG_LEVELS, "SERIALIZABLE"),
    together=("gather",),
    of_asyncio=True,
    waits=True,
    faults=ANY,
)
_REDIS = Family(run.in_redis, (of.one_counter,), of.REDIS_READS, of.REDIS_WRITES)
_MARIADB = Family(
    run.in_mariadb,
    (of.accounts_in_mariadb,),
    of.MARIADB_READS,
    of.MARIADB_WRITES,
    of.MARIADB_LOCKS,
    MARIADB_LEVELS,
    waits=False,
    faults=((), *OF_SQL, (PAUSE,)),
    database="mariadb",
)
_BOTH = Family(
    run.in_both,
    (of.accounts_and_a_counter,),
    (*of.PG_READS[:2], *of.REDIS_READS[:3]),
    (*of.PG_WRITES[:6], *of.REDIS_WRITES),
    of.PG_LOCKS,
    ("", "REPEATABLE READ"),
)
_ROWS = Family(
    run.in_postgres,
    (clock.dated_rows,),
    clock.ROW_READS,
    clock.ROW_WRITES,
    levels=("", "", "REPEATABLE READ"),
    looks=clock.LOOKS,
    compares=clock.COMPARES,
    faults=OF_CLOCKS,
    timed=True,
)
_KEYS = replace(
    _ROWS,
    operation=run.in_redis,
    setups=(clock.a_dated_key,),
    reads=clock.KEY_READS,
    writes=clock.KEY_WRITES,
    levels=(),
)
_TWO_FAULTS: Sequence[Faults] = ((CRASH, LOST), (LOST, Fault.FAILOVER), (PAUSE, CRASH), (JUMP, PAUSE))

FAMILIES: Mapping[str, Family] = {
    "three in PostgreSQL": replace(_POSTGRES, workers=3),
    "constraints": replace(_CONSTRAINED, most=3),
    "three with constraints": replace(_CONSTRAINED, workers=3, faults=NO_FAULT),
    "tasks in PostgreSQL": _TASKS,
    "tasks with one connection": replace(
        _TASKS,
        operation=run.by_asyncio_in_postgres,
        locks=of.PG_LOCKS[:8],
        levels=(),
        together=("gather", "group"),
    ),
    "tasks in Redis": replace(
        _REDIS, operation=run.by_asyncio_in_redis, together=("gather", "gather", "group"), of_asyncio=True
    ),
    "in Redis": replace(_REDIS, most=4),
    "three in Redis": replace(_REDIS, workers=3, faults=(*OF_SQL, (PAUSE,), (Fault.FAILOVER,))),
    "threads in Redis": replace(_REDIS, together=("gather",), with_events=True),
    "threads in both": replace(
        _BOTH, operation=run.by_threads, levels=(), together=("gather",), faults=OF_CLOCKS
    ),
    "in MariaDB": replace(_MARIADB, levels=(*MARIADB_LEVELS, "SERIALIZABLE"), most=3),
    "three in MariaDB": replace(_MARIADB, workers=3, faults=NO_FAULT),
    "tasks in MariaDB": replace(_MARIADB, operation=run.by_asyncio_in_mariadb, faults=OF_SQL),
    "streams": replace(
        _REDIS, setups=(of.one_stream,), reads=of.STREAM_READS, writes=of.STREAM_WRITES, most=3, timed=True
    ),
    "messages": replace(
        _REDIS, operation=run.subscribed, reads=of.MESSAGE_READS, writes=of.MESSAGE_WRITES, most=3
    ),
    "messages of asyncio": replace(
        _REDIS, operation=run.subscribed_by_asyncio, reads=of.MESSAGE_READS, writes=of.MESSAGE_WRITES
    ),
    "in both": replace(_BOTH, most=4),
    "two faults": replace(_BOTH, faults=_TWO_FAULTS, count=2),
    "clocks and rows": replace(_ROWS, most=3),
    "three clocks": replace(_ROWS, workers=3, faults=OF_SQL[1:3]),
    "two operations with clocks": replace(_ROWS, operations=2),
    "server's clock": replace(
        _ROWS, writes=(*clock.ROW_WRITES[:3], *clock.SERVER_CLOCK, *clock.SERVER_CLOCK), most=3
    ),
    "clocks and keys": replace(_KEYS, most=3),
    "clocks of threads": replace(_KEYS, together=("gather",)),
    "clocks and two faults": replace(_ROWS, faults=((JUMP,), *_TWO_FAULTS[2:]), count=2),
    "a pool": replace(
        _POSTGRES, operation=partial(run.with_a_pool, 1), levels=(), together=("gather",), waits=True
    ),
    "SQLAlchemy's pool": replace(
        _POSTGRES, operation=partial(run.with_sqlalchemy, 1), levels=(), together=("gather",), waits=True
    ),
}
