"""Ready-made invariants, and building blocks for your own.

explore([...], invariant=unique("shop_redemption", ["code", "customer_id"]))
explore([...], invariant=(lambda a, b: succeeded(a) + succeeded(b) == 1, "both got the last seat"))
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any

from lost_update_lab.snapshot.tables import Tables
from lost_update_lab.under_test.scenario import Mistake


class TableInvariant:
    """What must hold for the committed rows. `sentence`: what is true when it does not hold."""

    sentence = ""

    def bind(self, database: Tables) -> None:
        """The setup has run. From now on this is the database."""
        self.database = database

    def __call__(self) -> bool:
        raise NotImplementedError

    def _ask(self, query: str) -> Any:
        """The first column of the first row, as text. Raises Mistake."""
        try:
            return self.database.value(query)
        except LookupError as error:
            told = str(error).splitlines()[0].removeprefix("ERROR:").strip()
            raise Mistake(
                f"the invariant {type(self).__name__} cannot be asked: {told}. Name a table, and columns, that the "
                "setup has made"
            ) from None


def _quoted(name: str) -> str:
    """A table or a column quoted for the server, even one that is called `order`."""
    return ".".join(f'"{part}"' for part in name.split("."))


def _parted(column: str) -> tuple[str, str]:
    table, _, name = column.rpartition(".")
    if not table:
        raise Mistake(f"{column!r} names no table: write 'account.balance'")
    return table, name


class balance_conserved(TableInvariant):
    """The sum over a column stays what it was after the setup: money only moves. `column`: `"account.balance"`."""

    def __init__(self, column: str) -> None:
        self.table, self.column = _parted(column)
        self.sentence = f"the sum of {column} is not what it was: money was made or lost"

    def bind(self, database: Tables) -> None:
        super().bind(database)
        self.opening = self._sum()

    def __call__(self) -> bool:
        return bool(self._sum() == self.opening)

    def _sum(self) -> Any:
        told = self._ask(f"SELECT coalesce(sum({_quoted(self.column)}), 0) FROM {_quoted(self.table)}")  # noqa: S608  (the user's names)
        with suppress(InvalidOperation):  # of the type money, it is a text
            return Decimal(told)
        return told


class unique(TableInvariant):
    """No two rows of `table` agree in all of `columns`. As for a constraint, NULL agrees with nothing."""

    def __init__(self, table: str, columns: str | Sequence[str]) -> None:
        self.table, self.columns = table, [columns] if isinstance(columns, str) else list(columns)
        if not self.columns:
            raise Mistake(f"unique({table!r}, []) names no column: write unique({table!r}, ['code'])")
        self.sentence = f"two rows of {table} have the same {', '.join(self.columns)}"

    def __call__(self) -> bool:
        columns = ", ".join(map(_quoted, self.columns))
        known = " AND ".join(f"{_quoted(each)} IS NOT NULL" for each in self.columns)
        groups = f"SELECT 1 FROM {_quoted(self.table)} WHERE {known} GROUP BY {columns} HAVING count(*) > 1"  # noqa: S608  (the user's names)
        return bool(self._ask(f"SELECT NOT EXISTS ({groups})") in ("t", "1"))


class never_below(TableInvariant):
    """No value of the column is below `floor`. `column`: `"account.balance"`."""

    def __init__(self, column: str, floor: int = 0) -> None:
        self.table, self.column = _parted(column)
        self.floor = floor
        self.sentence = f"{column} is below {floor}"

    def __call__(self) -> bool:
        low = f"SELECT 1 FROM {_quoted(self.table)} WHERE {_quoted(self.column)} < {self.floor}"  # noqa: S608
        return bool(self._ask(f"SELECT NOT EXISTS ({low})") in ("t", "1"))


#: the default: the results and the final rows are those of some serial order
serializable = "serializable"


def succeeded(result: object) -> bool:
    """Did this worker return? False if it raised, crashed or waited for ever."""
    return not isinstance(result, BaseException)
