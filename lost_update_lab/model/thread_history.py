"""What a thread has sent and was told, in rounds. A round is what it does between two waits."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lost_update_lab.model.commands import ENDS
from lost_update_lab.model.digest import digest

#: at most this many rounds make a cycle: a renewal looks several times before it renews
LONGEST_CYCLE = 64


class Round(NamedTuple):
    """`base`, `looks`: what came before it, and how many looks."""

    mark: bytes
    base: bytes
    looks: int
    kind: bytes


@dataclass
class ThreadHistory:
    """What a task has sent and was told, as a digest. A poll is a round: everything between two waits."""

    base: bytes = b""
    round: list[bytes] = field(default_factory=list)
    last: tuple[bytes, ...] | None = None
    #: the two rounds before that one; whether the last one ended with a wait in a server, and the one before it
    earlier: tuple[tuple[bytes, ...], ...] = ((), ())
    in_server: tuple[bool, bool] = (False, False)
    #: its last poll was two rounds: a command that waits in a server, and a wait at home
    in_two: bool = False
    #: what this round was, apart from the time that a lease has left; all kinds that occurred; since when there was
    #: no new one, in µs, and for how many rounds
    kind: list[bytes] = field(default_factory=list)
    kinds: frozenset[bytes] = frozenset()
    steady_since: int = 0
    turns: int = 0
    #: the rounds that count, each with what came before it: `base`, and the number of looks
    rounds: list[Round] = field(default_factory=list)
    #: its last rounds repeated the ones before them
    folded: bool = False
    #: the commands of this round and of the one before; how many rounds in a row had the same names, though each was
    #: told something else; how many of those followed a change of what everyone could see
    sent: list[str] = field(default_factory=list)
    last_sent: list[str] = field(default_factory=list)
    tries: int = 0
    changes: int = 0
    seen: bytes = b""
    #: when it looked at its monotonic clock; such times only matter relative to now
    looks: list[int] = field(default_factory=list)
    round_from: int = 0
    #: what its open transactions have met, by session. It decides what they hold and will write, but only for as long
    #: as they are open
    inside: dict[Hashable, bytes] = field(default_factory=dict)

    def add(self, *parts: bytes, left: bytes | None = None) -> None:
        """`left`: the thread was told that a lease has this much time left."""
        self.round.append(digest(*parts) if left is None else digest(*parts, left))
        self.kind.append(self.round[-1] if left is None else digest(*parts))

    def meets(self, session: Hashable, *parts: bytes) -> None:
        """The thread met this inside a transaction."""
        self.inside = {**self.inside, session: digest(self.inside.get(session, b""), *parts)}

    def is_out(self, session: Hashable) -> None:
        """The transaction is over. Nothing is left of it but what the thread was told."""
        if session in self.inside:
            self.inside = {other: met for other, met in self.inside.items() if other != session}

    def look(self, now: int) -> None:
        if not self.looks or self.looks[-1] != now:
            self.looks.append(now)

    @property
    def is_empty(self) -> bool:
        """It has sent nothing, and was told nothing."""
        return not (self.base or self.round or self.rounds)

    @property
    def tries_again(self) -> bool:
        return bool(self.sent) and list(map(_name, self.sent)) == list(map(_name, self.last_sent))

    @property
    def comes_again(self) -> bool:
        """Is everything in this round, so far, the same as in the one before?"""
        before = self.earlier[0] if self.in_two else self.last
        return bool(before) and tuple(self.round) == (before or ())[: len(self.round)]

    def goes_on_as_before(self, command: str) -> bool:
        """Did the round before have this command at this place? Tries have only the names in common."""
        before = self.last_sent[len(self.sent)] if len(self.sent) < len(self.last_sent) else ""
        return before == command or (self.tries > 0 and _name(before) == _name(command))

    def tries_once_more(self, seen: bytes) -> None:
        """One more try. `seen`: what everyone can see after it."""
        self.changes = self.changes + (seen != self.seen) if self.tries else 0
        self.seen = seen

    def close(self, now: int, collapse: bool, forgets: bool = False, in_server: bool = False) -> bool:
        """End a round; `in_server`: with a wait there. Returns whether it was the same as the one before; or, if waits
        in a server and at home come in turn, whether the last two were the same as the two before them. With
        `collapse`, of rounds that come again in the same order, of a single one too, only the later ones count; and, if
        the thread `forgets`, of all rounds since it last did the same."""
        done, kind, self.folded = tuple(self.round), digest(*self.kind), False
        self.turns += 1
        if kind not in self.kinds:
            self.kinds = self.kinds | {kind}
            self.begin_watch(now)
        self.in_two = self._comes_in_two(done, in_server)
        same = bool(done) and (done == self.last or self.in_two)
        if forgets and not (same and collapse):
            self._forget(kind)
        self.rounds.append(Round(digest(*done), self.base, self.round_from, kind))
        self.base = digest(self.base, *done)
        self.folded |= collapse and self._fold()
        self.tries = self.tries + 1 if self.tries_again and not same else 0
        self.sent, self.last_sent = [], self.sent
        self.round_from = len(self.looks)
        self.earlier, self.last = (self.last or (), self.earlier[0]), done
        self.in_server = in_server, self.in_server[0]
        self.round.clear()
        self.kind.clear()
        return same

    def _comes_in_two(self, done: tuple[bytes, ...], in_server: bool) -> bool:
        """Did it only send a command that waits in a server, and wait at home, twice? What it looks at besides would be
        seen before what it waits for there, or after it."""
        one_in_each = self.in_server == (not in_server, in_server)
        sent = [text for text in (*self.last_sent, *self.sent) if text != "BEGIN" and text not in ENDS]
        return one_in_each and bool(done) and len(sent) <= 1 and (done, self.last) == self.earlier

    @property
    def poll(self) -> tuple[bytes, ...]:
        """What it did in its last poll, in whichever of two waits it is now."""
        last = self.last or ()
        return sum(sorted((last, self.earlier[0])), ()) if self.in_two else last

    def begin_watch(self, now: int) -> None:
        self.steady_since, self.turns = now, 0

    def _forget(self, kind: bytes) -> None:
        """Drop all since its first round of this kind, and that round too: this is another one of the kind."""
        for place, earlier in enumerate(self.rounds):
            if earlier.kind == kind:
                del self.looks[earlier.looks : self.round_from]
                self.round_from, self.base, self.folded = earlier.looks, earlier.base, True
                del self.rounds[place:]
                return

    def _fold(self) -> bool:
        """Did the last rounds only repeat the ones before them? One of two that are the same is left."""
        rounds = self.rounds
        del rounds[: -2 * LONGEST_CYCLE]
        marks = [each.mark for each in rounds]
        for length in range(1, len(rounds) // 2 + 1):
            if marks[-1] == marks[-1 - length] and marks[-length:] == marks[-2 * length : -length]:
                earlier, later = rounds[-2 * length : -length], rounds[-length:]
                gone = later[0].looks - earlier[0].looks
                del self.looks[earlier[0].looks : later[0].looks]
                self.base = later[0].base
                both = zip(earlier, later, strict=True)
                rounds[-2 * length :] = [one._replace(looks=other.looks - gone) for one, other in both]
                return True
        return False

    def copy(self) -> ThreadHistory:
        twin = ThreadHistory.__new__(ThreadHistory)  # at each decision: `replace` takes 1.7 times as long
        vars(twin).update(vars(self))
        twin.round, twin.kind, twin.rounds = self.round.copy(), self.kind.copy(), self.rounds.copy()
        twin.sent, twin.last_sent, twin.looks = self.sent.copy(), self.last_sent.copy(), self.looks.copy()
        return twin

    def key(self, now: int) -> tuple[Any, ...]:
        """All that the thread can know at time `now`."""
        return (*self.done, tuple(now - at for at in self.looks))

    @property
    def done(self) -> tuple[Any, ...]:
        """The same, independent of the time."""
        return self.base, tuple(self.round), sorted(self.inside.items())


def _name(command: str) -> str:
    return command.split(" ", 1)[0]
