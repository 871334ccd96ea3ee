"""A schedule as a person follows it: which worker sent what, from which line of the code; the reply; the changes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lost_update_lab.harness import Harness
from lost_update_lab.harness.play import play
from lost_update_lab.model.commands import Step, takes
from lost_update_lab.runs.place import anywhere, beside
from lost_update_lab.scenarios.overwrites import Did, overwrites
from lost_update_lab.scenarios.wording import readable
from lost_update_lab.schedule.enabled import is_unseen
from lost_update_lab.schedule.pending import WAITED
from lost_update_lab.schedule.schedule_id import encode, exactly
from lost_update_lab.schedule.world import World
from lost_update_lab.snapshot.catalogue import Table
from lost_update_lab.telling.lines import SourceLine, own_line
from lost_update_lab.telling.narrative import shortened
from lost_update_lab.telling.picture import PLAIN_KINDS
from lost_update_lab.under_test.operations import BREACHES, VIOLATED, Operations

#: the first letter of an id → the verdict that it stands for
OF_LETTER = {word[0]: word for word in BREACHES}
#: a server of the engine's → its name for people
NAMES = {"redis": "Redis", "postgres": "PostgreSQL", "mariadb": "MariaDB"}
#: the kinds of steps that the worker's own thread does. Another one may carry out its crash
OWN_STEPS = frozenset({"step", "look", "lost-reply", "cancel"})
Held = Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True)
class Move:
    """One step. `who`: a worker's name; "": a server or time. `line`: where the user's code was. `changes`: what has
    changed on the servers. `at`: seconds of virtual time."""

    at: float
    who: str
    kind: str
    command: str
    reply: str
    line: str
    source: str
    changes: tuple[str, ...]

    @property
    def is_fault(self) -> bool:
        return self.kind not in PLAIN_KINDS


@dataclass(frozen=True, slots=True)
class Schedule:
    """`id`: repeats it, in this scenario. "": it could not be repeated. `confirmed`: in how many of ten repetitions."""

    id: str
    verdict: str
    sentences: tuple[str, ...]
    faults: tuple[str, ...]
    moves: tuple[Move, ...]
    confirmed: int
    #: which worker overwrote which, in sentences
    overwrites: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def schedule_id(verdict: str, choices: Sequence[int]) -> str:
    letter = next((letter for letter, word in OF_LETTER.items() if word == verdict), "k")
    return f"{letter}/{encode(choices)}"


class StepRecorder:
    """Looks after each step of one schedule: where the user's code is, and what the servers hold."""

    def __init__(self, harness: Harness, system: Operations) -> None:
        self.harness, self.system = harness, system
        self.of: World | None = None
        self.lines: list[SourceLine | None] = []
        self.changes: list[tuple[str, ...]] = []
        self.written: list[frozenset[str]] = []
        #: steps that others can neither see nor be seen by
        self.unseen: list[bool] = []
        self._versions: dict[str, str] = {}
        self._held: Held = {}
        self._tables: dict[Table, bool] = {}
        system.reset(set(harness.servers))
        for server in harness.servers.values():
            server.begin()
        #: the keys that are there at the beginning
        self._opening = self._keys()

    def __call__(self, run: World, step: Step) -> None:
        if run is not self.of:
            self.of, self.lines, self.changes, self.written, self.unseen = run, [], [], [], []
            self._tables, self._held, self._versions = {}, dict(self._opening), {}
        place = anywhere()
        task = run.task(step.task) if step.task in run.names else None
        sent_before = task is not None and task.unheard  # by code that went on since
        own = step.kind in OWN_STEPS and step.worker and not sent_before
        op = task.op if task and own and step.kind == "step" else None
        self.unseen.append(op is not None and is_unseen(run, op))
        line = ((place and place.line) or own_line()) if own else None
        self.lines.append(line)
        with beside():
            before, now = self._look()
            versions = self._versions_now()
        self.changes.append(tuple(_changes(before, now)))
        different = {row for (row, cell), value in now.items() if before.get((row, cell)) != value}
        gone = {row for row, _ in before} - {row for row, _ in now}
        newer = {row for row, version in versions.items() if self._versions.get(row, version) != version}
        self.written.append(frozenset(different | gone | newer))
        self._held, self._versions = now, versions

    def _versions_now(self) -> dict[str, str]:
        found = {}
        for table in self._tables:
            rows = self.system.database.rows([table])[table]
            for place, (row, version) in enumerate(
                zip(rows, self.system.database.versions(table), strict=False)
            ):
                found[_row_name(table, place, row)] = version
        return found

    def _look(self) -> tuple[Held, Held]:
        """Returns what was there before this step, and what is there now, of everything that ever changed."""
        before, database = dict(self._held), self.system.database
        for table in database.changed():
            if table not in self._tables:
                self._tables[table] = True
                before.update(_cells(table, database.opening(table)))
        now: dict[tuple[str, str], str] = {}
        for table, rows in database.rows(list(self._tables)).items():
            now.update(_cells(table, rows))
        return before, now | self._keys()

    def _keys(self) -> dict[tuple[str, str], str]:
        found = [each for server in self.harness.servers.values() for each in server.listing()]
        return {
            (f"key {key}" + ("" if name == "redis" else f" on {name}"), ""): shortened(value, 40)
            for name, key, value, _ends in found
        }


def _cells(table: Table, rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[tuple[str, str], str]]:
    for place, row in enumerate(rows):
        for column, value in row.items():
            yield (_row_name(table, place, row), column), "NULL" if value is None else str(value)


def _row_name(table: Table, place: int, row: Mapping[str, Any]) -> str:
    name = ", ".join(str(row[column]) for column in table.key) if table.key else str(place)
    return f"{table.title}[{name}]"


def _changes(before: Held, now: Held) -> Iterator[str]:
    for row in sorted({row for row, _ in now} - {row for row, _ in before}):
        cells = {column: value for (its, column), value in now.items() if its == row}
        told = cells[""] if "" in cells else ", ".join(f"{column} {value}" for column, value in cells.items())
        yield f"{row} is new: {shortened(told, 90)}"
    for (row, column), value in now.items():
        was = before.get((row, column))
        if was is not None and was != value:
            yield f"{row}{'.' if column else ''}{column}: {was} → {value}"
    for row in sorted({row for row, _ in before} - {row for row, _ in now}):
        yield f"{row} is gone"


def told(
    harness: Harness,
    system: Operations,
    waiters: dict[bytes, int],
    choices: Sequence[int],
    confirmed: int = 1,
) -> Schedule:
    """The schedule, executed once more by the user's own code, with a look after each step."""
    recorder = StepRecorder(harness, system)
    with harness.unnoted():
        again, _ = play(harness, waiters, exactly(choices), recorder)
    names, several = system.scenario.names, _several(again.steps)
    order, steps = told_in(again.steps, recorder.unseen), again.steps
    moves = tuple(_move(steps[at], recorder.lines[at], recorder.changes[at], names, several) for at in order)
    did = [
        _did(move, steps[at], recorder.written[at] | _key(steps[at]))
        for move, at in zip(moves, order, strict=True)
    ]
    return Schedule(
        schedule_id(again.word, choices),
        again.word,
        (*again.judgement.sentences, *again.judgement.more()),
        tuple(map(str, again.faults)),
        moves,
        confirmed,
        overwrites(did) if again.word == VIOLATED else (),
    )


def told_in(steps: Sequence[Step], unseen: Sequence[bool]) -> list[int]:
    """The order in which the steps are told. One that nobody else can see (a BEGIN) is taken as early as it can. It
    is told with the next step of its thread, at the same time: else a schedule would seem to have more switches."""
    order, put_off = list[int](), list[int]()
    for at, step in enumerate(steps):
        mine = [] if unseen[at] else [each for each in put_off if steps[each].task == step.task]
        now = [each for each in put_off if each in mine or steps[each].at != step.at]
        order += now
        put_off = [each for each in put_off if each not in now]
        (put_off if unseen[at] else order).append(at)
    return order + put_off


def _did(move: Move, step: Step, written: frozenset[str]) -> Did:
    return Did(
        move.who.partition(" (thread")[0], step.command, move.reply.removesuffix(WAITED), move.line, written
    )


def _key(step: Step) -> frozenset[str]:
    """The key that the step has set, even if to its old value."""
    return frozenset({f"key {key}"} if (key := takes(step)) else ())


def _several(steps: Sequence[Step]) -> frozenset[str]:
    """The workers of which several threads, or tasks of an event loop, send commands."""
    senders = {(step.worker, step.task) for step in steps if step.kind == "step"}
    workers = [worker for worker, _ in senders]
    return frozenset(worker for worker in workers if workers.count(worker) > 1)


def _move(
    step: Step,
    line: SourceLine | None,
    changes: tuple[str, ...],
    names: Mapping[str, str],
    several: Collection[str],
) -> Move:
    """`several`: the workers of which it has to be said which thread, or which task, sends."""
    _, _, thread = step.task.partition(".")
    kind = f"task {thread[1:]}" if thread.startswith("t") else f"thread {thread}"
    who = names.get(step.worker, "") + (f" ({kind})" if thread and step.worker in several else "")
    command, reply = readable(step.command, step.reply)
    if step.kind == "lease":
        command = f"the lease of {step.command} is over"
    elif not step.worker and step.kind != "step":
        command = f"{NAMES.get(step.task, step.task)}: {command}"
    return Move(
        step.at / 1e6, who, step.kind, command, reply, str(line or ""), line.source if line else "", changes
    )
