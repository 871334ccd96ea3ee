"""What a program remembers, and tells at its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

NEVER = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass
class Memory:
    """`own`: the worker's own number. `shared`: what all threads, or tasks, of the worker know.

    `n`: the number that it has read last; `done`: did the last command that says so do something? `seen`: the time that
    it has read last; `at`: what its own clock has shown last.
    """

    own: int
    shared: dict[str, Any] = field(default_factory=dict)
    n: int = 0
    done: bool = True
    seen: datetime = NEVER
    at: datetime = NEVER
    errors: list[str] = field(default_factory=list)

    def keep(self, how: str, value: Any) -> None:
        if how == "n":
            self.n = int(value or 0)
        elif how == "done":
            self.done = bool(value)
        elif how == "found":
            self.done = value is not None
        elif how == "seen" and (time := _time(value)):
            self.seen = time

    def filled(self, text: Any) -> Any:
        """The text of a command with the values that stand for `{own}` and so on."""
        if not isinstance(text, str):
            return text
        values = {
            "{n+own}": str(self.n + self.own),
            "{n}": str(self.n),
            "{own}": str(self.own),
            "{at}": self.at.isoformat(),
            "{unix}": f"{self.at.timestamp():.6f}",
        }
        for name, value in values.items():
            text = text.replace(name, value)
        return text

    def told(self) -> str:
        """What it tells. No times: they are others in each run."""
        return f"{self.n} {self.done} {','.join(self.errors)} {sorted(self.shared.items())}"

    def of_others(self, others: Sequence[Memory], failed: Sequence[str]) -> None:
        """Its threads, or tasks, have ended."""
        told = "+".join(f"{each.n} {each.done} {','.join(each.errors)}" for each in others)
        self.errors.append(f"({told})" + "!" * bool(failed) + ",".join(sorted(failed)))


def _time(value: Any) -> datetime | None:
    """A time from a row, or a number of seconds from Redis; the last of several."""
    while isinstance(value, list | tuple):
        value = value[-1] if value else None
    if value is None or isinstance(value, datetime):
        return value
    return datetime.fromtimestamp(float(value), UTC)
