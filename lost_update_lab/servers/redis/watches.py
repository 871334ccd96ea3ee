"""What sessions watch. WATCH changes nothing; a write to such a key by anybody breaks it, and EXEC then does nothing.

    A: WATCH lock        A watches lock
    B: SET lock b        the same value or another: A's WATCH is broken, and stays so until A's next EXEC
    A: EXEC              nil

Which writes break one, the server itself says (CLIENT LIST, flag d): a SET of the same value does, a DEL of a key that
is not there does not. Only the keys, and whether it is broken, can matter to anybody, so no more makes a state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from lost_update_lab.model.memoised_server import Who


class Watch(NamedTuple):
    """`keys`: in order; none once it is broken, since then they decide nothing."""

    keys: tuple[bytes, ...] = ()
    broken: bool = False


BROKEN_WATCH = Watch(broken=True)

#: the sessions whose WATCH is not broken, with its keys
Whole = tuple[tuple[Who, tuple[bytes, ...]], ...]


def watch_after(watch: Watch | None, words: Sequence[bytes], in_multi: bool) -> Watch | None:
    """What a session watches after this command. None: nothing."""
    name = words[0].upper()
    if name == b"RESET" or (name in (b"EXEC", b"DISCARD") and in_multi):
        return None
    if in_multi or name not in (b"WATCH", b"UNWATCH"):
        return watch
    if name == b"UNWATCH":
        return None
    return watch if watch and watch.broken else Watch(tuple(sorted({*(watch or Watch()).keys, *words[1:]})))


def whole(watching: Mapping[Who, Watch], but: Who | None = None) -> Whole:
    """`but`: not that of the session which ends it before it does anything."""
    return tuple(
        sorted((who, watch.keys) for who, watch in watching.items() if not watch.broken and who != but)
    )


def described(watching: Mapping[Who, Watch]) -> bytes:
    """As a part of the state."""
    return repr(sorted((who, tuple(watch)) for who, watch in watching.items())).encode() if watching else b""


class Watches:
    """Those of a real server. `ask`: one round trip to it. A session's `number` is its CLIENT ID."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask
        self._known: dict[Who, Watch] = {}
        self._names: dict[int, Who] = {}
        self._looked = 0

    def begin(self) -> None:
        self._known, self._names, self._looked = {}, {}, 0

    def sent(self, who: Who, number: int, words: Sequence[bytes], in_multi: bool) -> None:
        """The session has sent this."""
        watch = watch_after(self._known.get(who), words, in_multi)
        if watch is None:
            self.forget(number)
        else:
            self._known[who], self._names[number] = watch, who

    def forget(self, number: int) -> None:
        if who := self._names.pop(number, None):
            del self._known[who]

    def name(self, number: int) -> Who | None:
        """By which name the session watches. None: it does not."""
        return self._names.get(number)

    def at(self, version: int) -> Mapping[Who, Watch]:
        """All of them, now that the server's contents have this version."""
        if self._looked != version:
            self._looked = version
            if asked := [number for number, who in self._names.items() if not self._known[who].broken]:
                self._known |= {self._names[number]: BROKEN_WATCH for number in self._broken(asked)}
        return self._known

    def _broken(self, numbers: Sequence[int]) -> Collection[int]:
        found = set()
        for line in self._ask("CLIENT", "LIST", "ID", *numbers).decode().splitlines():
            client = dict(word.split("=", 1) for word in line.split() if "=" in word)
            if "d" in client["flags"]:
                found.add(int(client["id"]))
        return found
