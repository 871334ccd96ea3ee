"""What a scenario asks of its database between two schedules, whichever server it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from lost_update_lab.snapshot.catalogue import Table

#: the rows of some tables. Values are those of JSON
TableRows = Mapping[Table, Sequence[Mapping[str, Any]]]


class Tables(Protocol):
    """The database after the setup."""

    @property
    def tables(self) -> tuple[Table, ...]: ...

    def restore(self) -> None:
        """Undo what the last schedule has written."""

    def changed(self) -> list[Table]:
        """The tables that differ from the opening state."""

    def rows(self, tables: Sequence[Table]) -> dict[Table, list[dict[str, Any]]]:
        """The rows that are committed now. Values are those of JSON."""

    def opening(self, table: Table) -> list[dict[str, Any]]:
        """The rows that existed after the setup."""

    def draw_ahead(self) -> dict[int, int]:
        """Move each sequence ahead by a distance of its own, until the next restore. Returns these distances, by the
        number of the sequence. Empty: that cannot be done."""

    def last_drawn(self) -> dict[int, int]:
        """The last number that each sequence had given out after the setup."""

    def texts(self) -> Iterable[str]:
        """All rows that existed after the setup, as texts."""

    def versions(self, table: Table) -> list[str]:
        """For each row of `rows`, in the same order, which write it is from. Empty: that is not known."""

    def value(self, query: str) -> str:
        """The first column of the first row. Raises LookupError with the server's words."""

    def close(self) -> None:
        """Remove everything that the explorer has made in the database."""
