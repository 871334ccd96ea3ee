"""What a mock (unittest.mock), or Django's mail.outbox, has recorded: calls of all schedules, in one list.

How often a worker has called each counts as a part of its answer; of calls with one idempotency key, the first one
does. But the recorder itself is no part of a schedule: most orders are computed without calling the user's code, and
what the other ones have recorded piles up. So an invariant that asks it decides nothing.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from lost_update_lab.gates.invariant_call import is_asking
from lost_update_lab.gates.patch import Patches
from lost_update_lab.runs.place import here

OUTBOX = "mail.outbox"
ASKED = (
    "the invariant asks what {} has recorded. Most orders are computed without calling your code, and the calls of all "
    "others pile up there"
)
RECORD_IT = (
    "let the stand-in record each call where a schedule can see it: in a row, or in a key (redis.incr('charged')); or "
    "let the operation return what it did. Without an invariant, how often each worker calls it is compared"
)
#: a keyword by whose value the other side tells that a call has come before
_KEY = re.compile(r"idempot|dedup|(?:^|_)key$", re.IGNORECASE)
_WITH = " with "
#: how a mock is asked for its calls
_QUESTIONS = ("called", "call_count", "call_args", "call_args_list", "mock_calls")


class RecordedCalls:
    """`made`: the recorders that workers have called in this search. `asked`: those that invariants have asked.
    `by_worker`: what each has called in its present run."""

    made: ClassVar[dict[str, None]] = {}
    asked: ClassVar[dict[str, None]] = {}
    by_worker: ClassVar[dict[int, list[str]]] = {}

    @classmethod
    def begin(cls) -> None:
        cls.made.clear()
        cls.asked.clear()

    @classmethod
    def note_call(cls, name: str, key: str = "") -> None:
        if place := here():
            cls.made[name] = None
            calls = cls.by_worker.setdefault(place.task.worker.index, [])
            if not key or name + key not in calls:
                calls.append(name + key)

    @classmethod
    def of_worker(cls, index: int) -> list[str]:
        """It begins; this list will hold what it calls."""
        cls.by_worker[index] = calls = list[str]()
        return calls

    @classmethod
    def told(cls) -> str:
        """That an invariant has asked. "": none has."""
        return ASKED.format(" and ".join(cls.asked)) if cls.asked else ""

    @classmethod
    def note_question(cls, name: str) -> None:
        if is_asking():
            cls.asked[name] = None


class _Outbox(list[Any]):
    """It notes who looks."""

    def __len__(self) -> int:
        RecordedCalls.note_question(OUTBOX)
        return super().__len__()

    def __iter__(self) -> Any:
        RecordedCalls.note_question(OUTBOX)
        return super().__iter__()

    def __getitem__(self, place: Any) -> Any:
        RecordedCalls.note_question(OUTBOX)
        return super().__getitem__(place)

    def append(self, mail: Any) -> None:
        RecordedCalls.note_call(OUTBOX)
        super().append(mail)


def install(patches: Patches) -> None:
    if mock := sys.modules.get("unittest.mock"):
        _mocks(patches, mock)
    mail: Any = sys.modules.get("django.core.mail")
    if hasattr(mail, "outbox"):
        patches.method(mail, "outbox", _Outbox(mail.outbox))


def _mocks(patches: Patches, mock: Any) -> None:
    callable_mock: Any = mock.CallableMixin
    call = callable_mock._mock_call

    def called(self: Any, *args: Any, **keywords: Any) -> Any:
        RecordedCalls.note_call(_name(self), _key_in(keywords))
        return call(self, *args, **keywords)

    patches.method(callable_mock, "_mock_call", called)
    for name in _QUESTIONS:
        plain = vars(mock.NonCallableMock)[name]
        patches.method(mock.NonCallableMock, name, property(_noted(plain.fget), plain.fset))
    for name in [each for each in dir(mock.NonCallableMock) if each.startswith("assert_")]:
        patches.method(mock.NonCallableMock, name, _noted(getattr(mock.NonCallableMock, name)))


def _noted(question: Any) -> Callable[..., Any]:
    def asked(self: Any, *args: Any, **keywords: Any) -> Any:
        RecordedCalls.note_question(_name(self))
        return question(self, *args, **keywords)

    return asked


def _key_in(keywords: Mapping[str, Any]) -> str:
    return "".join(f"{_WITH}{name}={value!r}" for name, value in keywords.items() if _KEY.search(name))


def is_keyed(call: str) -> bool:
    """Does it say by which key it is told from others?"""
    return _WITH in call


def without_keys(calls: Mapping[str, int]) -> dict[str, int]:
    found = Counter[str]()
    for call, count in calls.items():
        found[call.partition(_WITH)[0]] += count
    return dict(found)


def _name(mock: Any) -> str:
    found = mock._extract_mock_name()
    return "a mock" if found == "mock" else f"the mock {found}"
