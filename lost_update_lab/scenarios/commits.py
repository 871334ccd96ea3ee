"""What must hold at each commit, asked by a separate reader: a thread of no worker, with its own connections.

From then on the answer is a part of the server's contents. So a schedule in which the invariant failed is never merged
with one that only looks the same, and its end is judged by the failure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lost_update_lab.gates.redis.questions import asking
from lost_update_lab.runs.place import Here, anywhere, attach, beside
from lost_update_lab.servers.mariadb.memoised import Held
from lost_update_lab.servers.mariadb.server import MariaDBServer
from lost_update_lab.servers.postgres.server import Look, PostgresServer
from lost_update_lab.subject.operations import BROKEN
from lost_update_lab.subject.scenario import Invariant, Mistake


class Reader:
    """Asks the invariants in a thread of its own."""

    def __init__(self, always: Sequence[Invariant], leave: Callable[[], None]) -> None:
        self.always, self._leave = always, leave
        self._thread = ThreadPoolExecutor(1, "lost-update-lab-reader")
        self._thread.submit(int).result()  # it starts now, and not inside a schedule

    def broken(self) -> tuple[str, ...]:
        """The sentences of the invariants that do not hold now."""
        place = anywhere()
        there = Here(place.run, place.task, inside=1) if place else None
        with beside():  # waiting for its answer is no step
            return self._thread.submit(self._ask, there).result()

    def _ask(self, there: Here | None) -> tuple[str, ...]:
        attach(there)
        try:
            return tuple(each.sentence for each in self.always if not holds(each))
        finally:
            attach(None)

    def close(self) -> None:
        self._thread.submit(self._leave).result()
        self._thread.shutdown()


def holds(invariant: Invariant, *results: object) -> bool:
    """None, and any true value, passes; so does an assertion that does not fail. Raises Mistake."""
    try:
        with asking():
            found = invariant.holds(*results)
    except AssertionError:
        return False
    except Exception as error:
        told = f"the invariant ({invariant.sentence}) raised {type(error).__name__}: {error}".rstrip(".: ")
        raise Mistake(
            f"{told}. It must answer after every schedule, also when a worker has failed"
        ) from error
    return found is None or bool(found)


class ObservedPostgres(PostgresServer):
    """A PostgreSQL that has the reader ask at every commit."""

    makes_tables = False  # what is put back is what the setup has made
    reader: Reader | None = None
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

    reader: Reader | None = None
    _broken = b""

    def __init__(self, *args: Any, **keywords: Any) -> None:
        #: contents → the sentences of what does not hold for them
        self._known: dict[bytes, bytes] = {}
        super().__init__(*args, **keywords)

    def begin(self, *args: Any, **keywords: Any) -> None:
        self._broken = b""
        super().begin(*args, **keywords)

    def _look(self) -> Held:
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
