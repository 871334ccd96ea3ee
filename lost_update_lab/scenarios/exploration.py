"""One scenario from its beginning to its result: setup, serial orders, search, the smallest schedule, the control."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from math import inf
from typing import Any, cast

from lost_update_lab.gates import process_memory
from lost_update_lab.gates.invariant_clock import InvariantClock
from lost_update_lab.harness import Harness
from lost_update_lab.model.bounds import SECOND, Bounds
from lost_update_lab.model.errors import WHAT_ELSE
from lost_update_lab.model.server import Server
from lost_update_lab.replay.shrink import ends, repeatable
from lost_update_lab.runs import modules
from lost_update_lab.runs.executed import Executed
from lost_update_lab.runs.found import Found, SearchResult
from lost_update_lab.runs.look import IN_MEMORY
from lost_update_lab.runs.memory import Memory, changed
from lost_update_lab.runs.plain_state import places
from lost_update_lab.scenarios import only_once
from lost_update_lab.scenarios.carried import carried
from lost_update_lab.scenarios.clients import Twins
from lost_update_lab.scenarios.commits import InvariantReader
from lost_update_lab.scenarios.differing import Differing, drawn_by, keys_sent, rows_of
from lost_update_lab.scenarios.fresh_process import CachedAsking, filled
from lost_update_lab.scenarios.judging import Judge
from lost_update_lab.scenarios.meanwhile import Meanwhile
from lost_update_lab.scenarios.progress import SearchProgress, Watched
from lost_update_lab.scenarios.schedule import Schedule, told
from lost_update_lab.scenarios.serial import Serial, SerialOrders
from lost_update_lab.scenarios.server_times import compared_times
from lost_update_lab.scenarios.ties import asks_the_server, may_tie
from lost_update_lab.schedule.schedule_id import Diverged, decode
from lost_update_lab.search.poll_calibration import calibrate_polls
from lost_update_lab.search.search import Search
from lost_update_lab.servers.mariadb.server import MariaDBServer
from lost_update_lab.servers.redis.server import RedisServer
from lost_update_lab.snapshot.by_server import ByServer
from lost_update_lab.snapshot.functions import Names
from lost_update_lab.snapshot.redis import RedisSnapshot
from lost_update_lab.snapshot.tables import Tables
from lost_update_lab.telling.parameters import listed
from lost_update_lab.under_test.drawn import NOT_MEASURED, DrawnNumbers
from lost_update_lab.under_test.fresh import comparable, constants
from lost_update_lab.under_test.operations import BREACHES, Framework, Operations
from lost_update_lab.under_test.results import ResultText, unsteady
from lost_update_lab.under_test.scenario import Mistake, Scenario
from lost_update_lab.under_test.servers import Servers

#: µs: longer than the leases that people write into rows
ASIDE = 3600 * SECOND
NOT_AGAIN = "a schedule was {}, and is not when it is run again: something outside of the gates decides"
NOT_KNOWN = (
    "a global of a module, a file, a cache. Let the operations make it anew each time. Or it is a number of the "
    "server's own (xmin, txid_current(), a ctid that a function returns): use a version column instead, or a number "
    "from a sequence"
)


@dataclass
class Opened:
    """A scenario whose servers hold what its setup left there."""

    scenario: Scenario
    addresses: Servers
    #: the module of its database (on_postgres.py, on_mariadb.py)
    of: Any
    database: Tables
    keys: RedisSnapshot | None
    frameworks: Sequence[Framework]
    patches: Sequence[Any]
    judge: Judge
    #: what the server writes by itself; and columns in which that cannot be told from what others have written
    by_server: ByServer
    left_out: Names = field(default_factory=frozenset)
    #: the tables that the operations change when they run one after the other
    touched: frozenset[str] = frozenset()
    #: globals of the user's modules that are not the same after each schedule
    remembered: tuple[str, ...] = ()
    #: what the operations carry with them, and change
    carried: tuple[str, ...] = ()
    #: as in Operations
    moving: Collection[str] = ()
    drawn: DrawnNumbers = NOT_MEASURED
    #: classes whose objects say something else of themselves in each run
    unsteady: set[type] = field(default_factory=set)
    #: the operations write times that would be the same one after the other, and look for them (ties.py)
    distinct_times: bool = False
    #: workers look at their own clocks, and the database's clock writes times: both are virtual, so that they agree
    two_clocks: bool = False
    #: what the database does by itself goes by its virtual clock
    virtual_inside: bool = False
    #: when the search began that now begins again; 0: this is the first
    begun: float = 0.0
    #: `by_server` and `left_out` before any run
    at_first: tuple[ByServer, Names] | None = None
    has_run: bool = False
    #: what the serial orders have executed of the user's code
    executed: Executed = field(default_factory=Executed)
    #: what the first run has left in the user's modules, as each worker's own; and the cached functions that have asked
    memory: Memory | None = None
    cached: tuple[str, ...] = ()

    @cached_property
    def known(self) -> frozenset[str]:
        """The times and random keys of the opening state, and of the arguments."""
        operations = (op for worker in self.scenario.workers for op in worker.operations)
        given = (ResultText.of(op.given, None) for op in operations)
        return constants((*self.database.texts(), *(self.keys.texts() if self.keys else ()), *given))

    @property
    def bounds(self) -> Bounds:
        of = self.scenario
        return Bounds(
            workers=len(of.workers),
            faults=of.faults,
            kinds=of.kinds,
            most=of.most,
            slack=round(of.slack * SECOND),
            budget=of.budget,
            aside=ASIDE,
            redelivers=of.redelivered,
            twice=of.twice,
            deadlocks=of.deadlocks,
        ).again(self.begun)

    @contextmanager
    def harness(self, more: Sequence[Any] = ()) -> Iterator[tuple[Harness, Operations]]:
        """The scenario as the engine runs it. `more`: further gates."""
        twins, reader = Twins(), None
        system = Operations(
            self.scenario,
            self.addresses,
            self.database,
            self.keys,
            (*self.frameworks, _Pools(twins)),
            self.left_out,
            self.known,
            self.unsteady,
            self.by_server,
        )
        system.moving, system.drawn = self.moving, self.drawn
        with ExitStack() as stack:
            if self.scenario.always:
                reader = InvariantReader(self.scenario.always, self._leave)
                stack.callback(reader.close)
            servers = list(self._servers(stack, reader))
            system.servers = {server.name: server for server in servers}
            system.mariadb = next((each for each in servers if isinstance(each, MariaDBServer)), None)
            system.judge_by = self.judge
            gates = [*self.patches, twins.install, *more]
            harness = stack.enter_context(Harness(system, servers, self.bounds, gates))
            harness.memory, harness.distinct_times = self.memory, self.distinct_times
            harness.judge.tells_time = not self.scenario.invariants
            harness.counted = self.judge.serial.counted if self.judge.serial else ()
            yield harness, system

    def compare_with(self, serial: SerialOrders) -> None:
        """From now on outcomes are compared with those of these orders."""
        serial.close()
        self.judge.serial, of = serial, serial.system
        self.known, self.moving, self.drawn = frozenset(of.known), of.moving, of.drawn

    def _leave(self) -> None:
        for framework in self.frameworks:
            framework.leave(-1)

    def _servers(self, stack: ExitStack, reader: InvariantReader | None) -> Iterator[Server]:
        where = self.addresses, self.database, self.left_out, self.scenario.isolation
        database = self.of.server(*where, self.by_server)
        database.reader = reader
        stack.callback(database.close)
        if self.virtual_inside and self.addresses.on_mariadb:
            database.defaults_become_virtual()
        if self.two_clocks:
            database.becomes_timed()
        yield database
        if self.keys:
            redis = RedisServer(self.addresses.redis)
            stack.callback(redis.close)
            yield cast(Server, redis)


class _Pools:
    """The pools of a worker begin and end with it."""

    def __init__(self, twins: Twins) -> None:
        self.twins = twins

    def begin(self) -> None: ...

    def begin_worker(self, index: int) -> None:
        self.twins.begin(index)

    def settle(self, index: int) -> None: ...

    def leave(self, index: int) -> None:
        self.twins.close(index)


@dataclass(frozen=True)
class Finding:
    """What a search found, and its smallest breach."""

    searched: SearchResult
    smallest: Found | None
    schedule: Schedule | None
    seconds: float
    replayed: bool = False


def search(
    opened: Opened,
    examine: Callable[[SerialOrders], None],
    replay: str = "",
    progress: Callable[[SearchProgress], None] | None = None,
) -> Finding:
    """Run every schedule within the bounds, and find the smallest one that breaks something; or run just the schedule
    `replay`. `examine` gets the serial orders first, and what it raises ends everything. `progress` is told how far the
    search is. Raises Mistake."""
    while True:
        with opened.harness() as (harness, system):
            if replay:
                harness.until = inf  # somebody may look at it in a debugger
            with _no_breakpoints():
                if not _looked_at(opened, harness, system, examine):
                    continue
            if replay:
                return _replayed(harness, system, replay)
            watched = Watched.of(harness, opened.scenario.title, progress) if progress else Search(harness)
            with _no_breakpoints():
                return _searched(harness, system, watched)


def _looked_at(
    opened: Opened, harness: Harness, system: Operations, examine: Callable[[SerialOrders], None]
) -> bool:
    """Run the serial orders. Returns False if some value differs each time: then all starts over without it."""
    opened.judge.serial = serial = SerialOrders(harness, system)
    before = opened.by_server, opened.left_out
    opened.at_first = opened.at_first or before
    volatile(serial, opened)
    if before != (opened.by_server, opened.left_out):
        return False
    opened.remembered, opened.carried = tuple(serial.remembered), tuple(serial.carried)
    opened.touched = frozenset(table.title for table in system.database.changed())
    if not opened.two_clocks and serial.looks and asks_the_server(serial.all()):
        opened.two_clocks = True
        # the real times that the server wrote were others in each run
        opened.by_server, opened.left_out = opened.at_first
        return False
    if why := compared_times(serial, opened.by_server):
        if opened.two_clocks or not opened.virtual_inside:
            raise why  # it begins again, with a virtual clock inside; or what writes the time cannot be altered
        opened.two_clocks, opened.distinct_times = True, opened.distinct_times or why.with_another
        opened.by_server, opened.left_out = opened.at_first
        return False
    if not opened.distinct_times and may_tie(
        serial.all(), opened.database.tables, serial.looks, InvariantClock.commands
    ):
        opened.distinct_times = True
        return False
    examine(serial)
    if unnamed := drawn_by(serial.all(), opened.database.tables) - set(opened.left_out):
        opened.left_out = frozenset({*opened.left_out, *unnamed})
        return False
    if not opened.scenario.invariants:
        opened.compare_with(serial)
    return True


def _searched(harness: Harness, system: Operations, searching: Search) -> Finding:
    searched = searching.explore()
    if searched.gone_around:
        return Finding(searched, None, None, searched.seconds)
    worst = next((word for word in BREACHES if word in searched.words), "")
    found, schedule = searched.smallest(worst) if worst else None, None
    if found:
        found, times = repeatable(harness, searching.calibrated, found, ends(searched))
        with suppress(Diverged):
            schedule = told(harness, system, searching.calibrated, found.choices, times)
        if not schedule or schedule.verdict not in BREACHES:  # it broke, and does not again
            searched.cause, searched.remedy, searched.exhausted = NOT_AGAIN.format(worst), WHAT_ELSE, False
            schedule = None
    return Finding(searched, found, schedule, searched.seconds)


def _replayed(harness: Harness, system: Operations, name: str) -> Finding:
    """One schedule by its id. Raises Mistake: this is not an id, or there is no such schedule here."""
    begun, searched = time.perf_counter(), SearchResult(harness.bounds, BREACHES)
    try:
        choices = tuple(decode(name.rpartition("/")[2]))
        with _no_breakpoints():
            watched = calibrate_polls(harness)
        schedule = told(harness, system, watched, choices)
    except ValueError as error:
        raise Mistake(f"not a schedule id: {name!r} ({error}). One looks like v/3a2") from None
    except Diverged as error:
        raise Gone(
            f"schedule {name} does not exist here: {error}. The code or its bounds have changed: explore again"
        ) from None
    searched.schedules = 1
    return Finding(searched, None, schedule, time.perf_counter() - begun, replayed=True)


class Gone(Mistake):
    """The schedule that is to be replayed does not exist in this code."""


@contextmanager
def _no_breakpoints() -> Iterator[None]:
    """A breakpoint in the user's code is for the schedule that is replayed, and not for what comes before it."""
    before, sys.breakpointhook = sys.breakpointhook, lambda *args, **keywords: None
    try:
        yield
    finally:
        sys.breakpointhook = before


def _first_run(serial: SerialOrders, opened: Opened, order: tuple[int, ...]) -> Serial:
    """Clients connect, caches fill: what does it leave that no process begins with?"""
    before, first, again = places(modules.own_modules("")), CachedAsking(), CachedAsking()
    with opened.executed.noted():
        begun = serial.run(order, first)
    opened.memory = serial.harness.memory = filled(before, opened.executed.modules())
    if first.names:
        serial.run(order, again)
    opened.cached = tuple(sorted(first.names - again.names))
    opened.has_run = True
    return begun


def volatile(serial: SerialOrders, opened: Opened) -> None:
    """Note what differs between two runs of the same order. Raises Mistake if that is more than values in columns."""
    system = serial.system
    order = tuple(i for i, worker in enumerate(system.scenario.callers) for _ in worker.operations)
    held_at_first = carried(system.scenario)
    theirs = {
        str(getattr(each.call, "__module__", "")) for w in system.scenario.callers for each in w.operations
    }
    modules.Tests.under_test = theirs
    begun = None if opened.has_run else _first_run(serial, opened, order)
    if not begun:
        serial.run(order)
    own = opened.executed.modules()
    held_before = modules.state("", theirs, own)
    meanwhile = Meanwhile(system.scenario, held_before)
    with opened.executed.noted():
        first, one = serial.run(order, meanwhile), rows_of(system)
        serial.meanwhile = meanwhile.told
        held, with_them = modules.state("", theirs, own), carried(system.scenario)
        second, other = serial.run(order), rows_of(system)
    for pair in zip(first.observed.results, second.observed.results, strict=True):
        opened.unsteady.update(unsteady(*pair))
    now = carried(system.scenario)
    # a run that changed nothing in the modules changes nothing when it comes again: a third look was 1/9 of a small
    # search
    held_after = held if held == held_before else modules.state("", theirs, own)
    serial.remembered = changed(held, held_after) + changed(with_them, now)
    serial.carried = changed(held_at_first, now)
    if known_to_change := (*serial.remembered, *serial.carried):
        _no_shared_memory({**held, **now}, known_to_change)
    _check_repeatable(serial, first, second)
    if begun and not opened.cached:  # cached functions are reported already
        only_once.look(begun, first, serial.harness.servers, serial.carried)
    sent = [keys_sent(each.steps) for each in (first, second)]
    differ = Differing(opened.by_server, opened.left_out, sent[0] & sent[1])
    opened.by_server, opened.left_out = differ.without(one, other)
    if opened.executed.modules() != own:  # it has come to more code: what does that change?
        volatile(serial, opened)


def _check_repeatable(serial: SerialOrders, first: Serial, second: Serial) -> None:
    """Raises Mistake if two runs of the same order have not sent the same."""
    commands = [[listed(str(comparable(step.command))) for step in each.steps] for each in (first, second)]
    if commands[0] == commands[1]:
        return
    pairs = zip_longest(*commands, fillvalue="nothing more")
    before, after = next(pair for pair in pairs if pair[0] != pair[1])
    found = ", ".join(dict.fromkeys([*serial.remembered, *serial.carried]))
    names = f"{found}. Let the operations make it anew each time" if found else NOT_KNOWN
    raise Mistake(
        "the operations are not repeatable: run twice in the same order, from the same rows, they sent "
        f"{before!r} and then {after!r}. Something outside of the servers survives: {names}"
    )


def _no_shared_memory(held: Mapping[str, str], names: Collection[str]) -> None:
    """Raises Mistake if one of the names stands for raw memory that the operations have written."""
    if found := [name for name in names if held.get(name, "").startswith(IN_MEMORY)]:
        told = process_memory.TOLD.format(what=f"ctypes or mmap: {', '.join(found)}")
        raise Mistake(f"{told}. The remedy: {process_memory.IN_A_SERVER}")
