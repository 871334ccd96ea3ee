"""What a thread has sent and what it was told, in rounds: what it does between two waits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from loadtest.explorer.digests import digest

#: so many rounds may make a cycle: a renewal looks several times before it renews
LONGEST_CYCLE = 64


@dataclass(slots=True)
class History:
    """What a task has sent and what it was told, as a digest. A poll is a round: everything between two waits."""

    base: bytes = b""
    round: list[bytes] = field(default_factory=list)
    last: tuple[bytes, ...] | None = None
    #: the rounds that count, each with what was before it: `base`, and how many looks
    rounds: list[tuple[bytes, bytes, int]] = field(default_factory=list)
    #: its last rounds were the ones before, once more
    folded: bool = False
    #: the commands of this round and of the one before; how many rounds running had the same names, though each was
    #: told something else; how many of those came after a change of what everybody could see
    sent: list[str] = field(default_factory=list)
    last_sent: list[str] = field(default_factory=list)
    attempts: int = 0
    changes: int = 0
    seen: bytes = b""
    #: when it looked at its monotonic clock; such times only matter relative to now
    looks: list[int] = field(default_factory=list)
    last_from: int = 0
    round_from: int = 0

    def add(self, *parts: bytes) -> None:
        self.round.append(digest(*parts))

    def look(self, now: int) -> None:
        if not self.looks or self.looks[-1] != now:
            self.looks.append(now)

    @property
    def tries_again(self) -> bool:
        return bool(self.sent) and list(map(_name, self.sent)) == list(map(_name, self.last_sent))

    def goes_on_as_before(self, command: str) -> bool:
        """Is it this that the round before had at this place? Of attempts only the names are the same."""
        before = self.last_sent[len(self.sent)] if len(self.sent) < len(self.last_sent) else ""
        return before == command or (self.attempts > 0 and _name(before) == _name(command))

    def attempt(self, seen: bytes) -> None:
        """Another one; `seen`: what everybody can see after it."""
        self.changes = self.changes + (seen != self.seen) if self.attempts else 0
        self.seen = seen

    def close(self, collapse: bool) -> bool:
        """End a round. → was it the same as the one before? Then, if `collapse`, only the later one counts. So it is
        with several that come again in the same order."""
        done, self.folded = tuple(self.round), False
        same = bool(done) and done == self.last
        if same and collapse:
            del self.looks[self.last_from : self.round_from]
        else:
            self.rounds.append((digest(*done), self.base, self.round_from))
            self.base = digest(self.base, *done)
            self.last_from = self.round_from
            self.folded = collapse and self._fold()
        self.attempts = self.attempts + 1 if self.tries_again and not same else 0
        self.sent, self.last_sent = [], self.sent
        self.round_from = len(self.looks)
        self.last = done
        self.round.clear()
        return same

    def _fold(self) -> bool:
        """Did the last rounds bring nothing but those before them once more?"""
        rounds = self.rounds
        del rounds[: -2 * LONGEST_CYCLE]
        marks = [mark for mark, _, _ in rounds]
        for length in range(2, len(rounds) // 2 + 1):
            if marks[-1] == marks[-1 - length] and marks[-length:] == marks[-2 * length : -length]:
                earlier, later = rounds[-2 * length : -length], rounds[-length:]
                gone = later[0][2] - earlier[0][2]
                del self.looks[earlier[0][2] : later[0][2]]
                self.base = later[0][1]
                again = [
                    (mark, base, at - gone)
                    for (mark, base, _), (_, _, at) in zip(earlier, later, strict=True)
                ]
                rounds[-2 * length :] = again
                self.last_from = rounds[-1][2]
                return True
        return False

    def copy(self) -> History:
        return replace(
            self,
            round=self.round.copy(),
            rounds=self.rounds.copy(),
            sent=self.sent.copy(),
            last_sent=self.last_sent.copy(),
            looks=self.looks.copy(),
        )

    def key(self, now: int) -> tuple[Any, ...]:
        """All that the thread can know, `now` being the time."""
        return (self.base, tuple(self.round), tuple(now - at for at in self.looks))


def _name(command: str) -> str:
    return command.split(" ", 1)[0]
