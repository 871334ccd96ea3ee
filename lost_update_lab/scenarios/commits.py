"""What must hold at each commit, asked by a separate reader: a thread of no worker, with its own connections.

From then on the answer is a part of the server's contents. So a schedule in which the invariant failed is never merged
with one that only looks the same, and its end is judged by the failure.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from lost_update_lab.gates.invariant_call import asking
from lost_update_lab.invariants import TableInvariant
from lost_update_lab.runs.in_time import Aside, Unending, within
from lost_update_lab.runs.place import Here, anywhere, attach, beside
from lost_update_lab.servers.mariadb.memoised import HeldInTables
from lost_update_lab.servers.mariadb.server import MariaDBServer
from lost_update_lab.servers.postgres.server import Look, PostgresServer
from lost_update_lab.under_test.can_fail import can_fail
from lost_update_lab.under_test.operations import BROKEN
from lost_update_lab.under_test.scenario import Invariant, Mistake

#: seconds for an invariant: fewer than a worker's command has (hang.NEWS_WITHIN), in which it may be asked
ANSWERS_WITHIN = 15.0
FORGOTTEN = (
    "the invariant ({}) returned nothing, and asserts nothing: no schedule can break it. Return whether it holds, or "
    "assert that it does"
)
UNCLEAR = (
    "the invariant ({}) returned {:.60} ({}), which is no answer: it has to be true or false. Return a comparison, or "
    "bool(…) of what must not be empty"
)
NOT_AWAITED = "the invariant ({}) is a coroutine, and nobody awaits it. Let it call asyncio.run(…)"
NOT_ALWAYS = (
    "the invariant ({}) returned something once, and nothing another time, which would pass. Return in each case "
    "whether it holds"
)


class InvariantReader:
    """Asks the invariants in a thread of its own."""

    def __init__(self, always: Sequence[Invariant], leave: Callable[[], None]) -> None:
        self.always, self._leave = always, leave
        self._thread = Aside()
        self._unanswered: Mistake | None = None

    def broken(self) -> tuple[str, ...]:
        """The sentences of the invariants that do not hold now."""
        place = anywhere()
        there = Here(place.run, place.task, inside=1) if place else None
        with beside():  # waiting for its answer is no step
            return tuple(each.sentence for each in self.always if not self._holds(each, there))

    def _holds(self, invariant: Invariant, there: Here | None) -> bool:
        if self._unanswered:  # it was raised in a worker's code, which may have caught it
            raise self._unanswered
        try:
            return self._thread.within(ANSWERS_WITHIN, self._ask, invariant, there)
        except Unending as unending:
            self._unanswered = _unanswered(invariant.sentence, unending)
            raise self._unanswered from None

    def _ask(self, invariant: Invariant, there: Here | None) -> bool:
        attach(there)
        try:
            return answer(invariant)
        finally:
            attach(None)

    def close(self) -> None:
        if not self._thread.lost:
            self._thread.within(ANSWERS_WITHIN, self._leave)
        self._thread.close()


def holds(invariant: Invariant, *results: object) -> bool:
    """A true value passes; so does nothing, from one that asserts. Raises Mistake."""
    try:
        return within(ANSWERS_WITHIN, answer, invariant, *results)
    except Unending as unending:
        raise _unanswered(invariant.sentence, unending) from None


def answer(invariant: Invariant, *results: object) -> bool:
    """The same, however long it takes."""
    try:
        with asking() as asks:
            found = invariant.holds(*results)
        if not isinstance(invariant.holds, TableInvariant):  # it asks beside the gates
            invariant.asked.add(asks.of_a_server)
    except AssertionError as failed:
        invariant.said[:] = str(failed).splitlines()[:1]
        return False
    except Mistake:
        raise
    except Exception as error:
        told = f"the invariant ({invariant.sentence}) raised {type(error).__name__}: {error}".rstrip(".: ")
        raise Mistake(
            f"{told}. It must answer after every schedule, also when a worker has failed"
        ) from error
    if mistake := _unclear(invariant, found):
        raise Mistake(mistake)
    return found is None or bool(found)


def _unclear(invariant: Invariant, found: object) -> str:
    """Why this answer would pass, or may, whatever is true. "": it says something."""
    if inspect.iscoroutine(found):
        found.close()
        return NOT_AWAITED.format(invariant.sentence)
    if not hasattr(type(found), "__bool__"):  # a row, a list, a method that nobody called
        return UNCLEAR.format(invariant.sentence, repr(found), type(found).__name__)
    invariant.returned.add(found is not None)
    if len(invariant.returned) > 1:
        return NOT_ALWAYS.format(invariant.sentence)
    forgotten = found is None and not can_fail(invariant.holds)
    return FORGOTTEN.format(invariant.sentence) if forgotten else ""


def _unanswered(sentence: str, unending: Unending) -> Mistake:
    return Mistake(
        f"the invariant ({sentence}) has not answered after {ANSWERS_WITHIN:.0f} s: {unending}. Let it look at what is "
        "committed, and wait for nobody"
    )


class ObservedPostgres(PostgresServer):
    """A PostgreSQL that has the reader ask at every commit."""

    reader: InvariantReader | None = None
    _broken = b""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        #: contents → the sentences of what does not hold for them
        self._known: dict[bytes, bytes] = {}

    def begin(self, *args: object, **keywords: object) -> None:
        self._broken = b""
        super().begin(*args, **keywords)  # type: ignore[arg-type]

    def touched(self, by: Any = None) -> None:
        super().touched(by)
        if self.reader and not self._broken:
            self._look()

    def _look(self) -> Look:
        contents, everything, ends = super()._look()
        if self.reader and not self._broken and BROKEN not in contents:
            if contents not in self._known:
                self._known[contents] = "\n".join(self.reader.broken()).encode()
            self._broken = self._known[contents]
        if self._broken and BROKEN not in contents:
            mark = BROKEN + self._broken
            contents, everything = contents + mark, everything + mark
            self._seen[self.version] = contents, everything, ends
            self.answers.ends[everything] = ends
        return contents, everything, ends


class ObservedMariaDB(MariaDBServer):
    """The same on a MariaDB."""

    reader: InvariantReader | None = None
    _broken = b""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        #: contents → the sentences of what does not hold for them
        self._known: dict[bytes, bytes] = {}
        super().__init__(*args, **keywords)

    def begin(self, *args: Any, **keywords: Any) -> None:
        self._broken = b""
        super().begin(*args, **keywords)

    def _look(self) -> HeldInTables:
        held = super()._look()
        if self.reader and not self._broken and BROKEN not in held.contents:
            if held.contents not in self._known:
                self._known[held.contents] = "\n".join(self.reader.broken()).encode()
            self._broken = self._known[held.contents]
        if self._broken and BROKEN not in held.contents:
            mark = BROKEN + self._broken
            held = held._replace(contents=held.contents + mark, everything=held.everything + mark)
            self._seen[self.version] = held
        return held
