"""What a user puts on trial: a setup, workers with their operations, what must hold, and how much may go wrong."""

from __future__ import annotations

import inspect
import string
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from inspect import Parameter
from types import FunctionType
from typing import Any

from lost_update_lab.model.bounds import Fault, Most

MOST_WORKERS = 8
#: parameters that are passed in when the caller does not bind them, as to a lock: a connection of this worker's own
HANDED_IN = ("sql", "redis")


class Mistake(Exception):
    """The scenario cannot be explored as it is written. The message says why, and what to do about it."""


@dataclass(frozen=True)
class Operation:
    """One call of a user's function."""

    call: Callable[..., Any]
    args: tuple[Any, ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    #: the variables around a function, when it was given: name, cell, value
    free: tuple[tuple[str, Any, Any], ...] = ()

    @property
    def given(self) -> list[Any]:
        """All that it is called with, a partial function's arguments and a closure's variables too."""
        within = [self.call.args, self.call.keywords] if isinstance(self.call, partial) else []
        return [self.args, self.keywords, *within, *(value for _, _, value in self.free)]

    @property
    def title(self) -> str:
        """The function's name, as results print it."""
        return str(getattr(self.call, "__qualname__", None) or type(self.call).__name__)

    @cached_property
    def wants(self) -> tuple[str, ...]:
        """The names in HANDED_IN that it asks for. Raises TypeError if the arguments do not fit."""
        try:
            signature = inspect.signature(self.call)
        except ValueError:  # a builtin without a signature
            return ()
        named = [
            p.name for p in signature.parameters.values() if p.name in HANDED_IN and p.default is p.empty
        ]
        without = [p for p in signature.parameters.values() if p.name not in named]
        with suppress(TypeError):  # wherever they stand: def pay(sql, amount)
            signature.replace(parameters=without).bind(*self.args, **self.keywords)
            return tuple(named)
        open_ = signature.bind_partial(*self.args, **self.keywords).arguments
        needs = [p for p in signature.parameters.values() if p.default is p.empty and p.name not in open_]
        needs = [p for p in needs if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        if missing := [p.name for p in needs if p.name not in HANDED_IN]:
            raise TypeError(f"{self.title}() misses the argument {missing[0]!r}")
        return tuple(p.name for p in needs)

    def called_with(self, handed: Mapping[str, Any]) -> Any:
        """What it returns. `handed`: what it asks for, by name. That may stand anywhere: `lambda sql, ann, bob: …`,
        `lambda *results, redis: …`"""
        named = dict(handed)
        if not named:
            return self.call(*self.args, **self.keywords)
        left, places = list(self.args), list[Any]()
        for each in inspect.signature(self.call).parameters.values():
            if not left or each.kind is each.KEYWORD_ONLY:
                break
            if each.name in named:
                places.append(named.pop(each.name))
            elif each.kind is not each.VAR_POSITIONAL:
                places.append(left.pop(0))
        return self.call(*places, *left, **self.keywords, **named)


@dataclass(frozen=True, slots=True)
class Worker:
    """One caller, which does one operation after another. It stands for a process of its own."""

    name: str
    operations: tuple[Operation, ...]

    @property
    def kind(self) -> tuple[str, ...]:
        """What it does: workers of one kind do the same."""
        return tuple(each.title for each in self.operations)

    @property
    def is_of_asyncio(self) -> bool:
        """Is it a coroutine? Then it may be a race in itself: the tasks of its event loop."""
        return any(inspect.iscoroutinefunction(each.call) for each in self.operations)

    def then(self, call: Callable[..., Any], *args: Any, **keywords: Any) -> Worker:
        """The same worker with one more operation after the others."""
        return Worker(self.name, (*self.operations, _operation(self.name, call, args, keywords)))


def worker(name: str, call: Callable[..., Any], *args: Any, **keywords: Any) -> Worker:
    """A worker that calls this with these arguments. Raises Mistake."""
    return Worker(name, (_operation(name, call, args, keywords),))


def _operation(name: str, call: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> Operation:
    if inspect.iscoroutine(call) or not callable(call):
        told = f"{call!r} of {name} is no callable, but {type(call).__name__}"
        raise Mistake(f"{told}. Give the function and its arguments apart: worker({name!r}, redeem, 'XMAS')")
    if inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call):
        raise Mistake(
            f"{call.__qualname__} of {name} is a generator: to call it runs none of it. Give what uses it up"
        )
    operation = Operation(call, args, keywords, tuple(_free(call)))
    try:
        operation.wants  # noqa: B018  (it raises)
    except TypeError as error:
        raise Mistake(f"{name} cannot call {operation.title}: {error}") from None
    return operation


def _free(call: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(call, FunctionType):
        for name, cell in zip(call.__code__.co_freevars, call.__closure__ or (), strict=False):
            with suppress(ValueError):  # it is empty yet
                yield name, cell, cell.cell_contents


def workers_of(given: Iterable[Any], one_is_enough: bool = False) -> tuple[Worker, ...]:
    """Workers, callables without arguments, or (callable, arguments …). Without a name they are called A, B, C …
    `one_is_enough`: something may go wrong for it, or it comes a second time."""
    if callable(given) or not isinstance(given, Iterable):
        raise Mistake("explore() takes a list of workers, one for each caller: explore([redeem, redeem])")
    found: dict[str, Worker] = {}
    for letter, each in zip(string.ascii_uppercase, given, strict=False):
        if isinstance(each, Worker):
            made = each
        elif isinstance(each, tuple) and each:
            made = worker(letter, *each)
        else:
            made = worker(letter, each)
        if made.name in found:
            raise Mistake(f"two workers are called {made.name!r}: give each a name of its own")
        found[made.name] = made
    alone = len(found) == 1 and (one_is_enough or any(each.is_of_asyncio for each in found.values()))
    if not (alone or 2 <= len(found) <= MOST_WORKERS):
        told = f"{len(found)} worker{'s' * (len(found) != 1)}"
        again = any(len(each.operations) > 1 for each in found.values())
        hint = (
            ". The same name again adds to that worker's operations: give the other one another name" * again
        )
        raise Mistake(
            f"{told}: a race needs 2, and more than {MOST_WORKERS} are never exhausted. Name 2 or 3 (what one worker "
            "does in several threads, each as a worker), or let something go wrong for one (crashes=1), or give "
            f"pairs=[redeem, refund]{hint}"
        )
    _no_late_binding(tuple(found.values()))
    return tuple(found.values())


def check_results(scenario: Scenario) -> None:
    """Raises Mistake if an invariant takes more results than there are workers, or fewer without naming whose; or one
    by the name of another worker; or any at a commit."""
    workers = scenario.callers
    names = [worker.name.lower() for worker in workers]
    for each in scenario.invariants:
        takes = [name.lower() for name in each.takes]
        for place, (name, own) in enumerate(zip(takes, names, strict=False)):
            if name != own and name in names:
                raise Mistake(
                    f"the invariant ({each.sentence}) takes {each.takes[place]!r} where it is given the result of "
                    f"{workers[place].name}: it is called with the results in the order of the workers"
                )
        some = len(takes) < len(workers) and takes != names[: len(takes)] and not each.takes_the_rest
        if len(takes) > len(workers) or some:
            results = f"{len(takes)} result{'s' * (len(takes) != 1)}"
            raise Mistake(
                f"the invariant ({each.sentence}) takes {results}, and there are {len(workers)} workers: it is called "
                f"with one result for each worker, in their order (lambda {', '.join(names)}: …; lambda *results: …), "
                "or with nothing"
            )
    for each in scenario.always:
        if each.takes_results:
            raise Mistake(
                f"the invariant ({each.sentence}) takes results, and is asked at each commit, when no worker has "
                "returned yet. Let it take nothing, or give it as an invariant"
            )


def _no_late_binding(workers: Sequence[Worker]) -> None:
    """Raises Mistake if a variable of a loop, in which the workers were named, has another value by now."""
    first: dict[int, tuple[str, Any]] = {}
    for each in workers:
        for name, cell, value in (free for operation in each.operations for free in operation.free):
            who, was = first.setdefault(id(cell), (each.name, value))
            if was is not value and cell.cell_contents is not was:
                raise Mistake(
                    f"{who}'s function was given while {name} was {was!r:.40}, and uses {cell.cell_contents!r:.40}, as "
                    f"{each.name}'s does: a function sees the last value of a loop's variable. Give the value as an "
                    "argument: race.worker(name, redeem, 'XMAS', name)"
                )


@dataclass(frozen=True)
class Invariant:
    """What must hold after each schedule, and the sentence that is true when it does not."""

    holds: Callable[..., Any]
    sentence: str
    #: has it returned something, or nothing, until now?
    returned: set[bool] = field(default_factory=set, compare=False, repr=False)
    #: has it asked a server, or none, until now?
    asked: set[bool] = field(default_factory=set, compare=False, repr=False)
    #: the words with which it last failed, if it asserts
    said: list[str] = field(default_factory=list, compare=False, repr=False)

    @property
    def is_blind(self) -> bool:
        """Has it answered without asking a server, or for the results of the workers? `lambda: True` is meant so:
        every order has to end, and anything goes."""
        code = getattr(self.holds, "__code__", None)
        constant = code is not None and not (code.co_names or code.co_freevars)
        return self.asked == {False} and not (self.takes_results or constant)

    @property
    def takes_results(self) -> bool:
        """Of the workers."""
        return bool(self.takes) or self.takes_the_rest

    def taken(self, results: Sequence[Any]) -> Sequence[Any]:
        """What it is called with, if the workers came to these."""
        return results if self.takes_the_rest else results[: len(self.takes)]

    @cached_property
    def takes(self) -> list[str]:
        """The names of the results in its own code. What has a default keeps it: `lambda url=url: …`."""
        positional = Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD
        own = [p.name for p in self._parameters if p.kind in positional and p.default is p.empty]
        return [name for name in own if name not in HANDED_IN]

    @cached_property
    def wants(self) -> tuple[str, ...]:
        """The names in HANDED_IN that it asks for."""
        return tuple(p.name for p in self._parameters if p.name in HANDED_IN and p.default is p.empty)

    @cached_property
    def takes_the_rest(self) -> bool:
        """`lambda *results: …`"""
        return any(p.kind is p.VAR_POSITIONAL for p in self._parameters)

    @property
    def _parameters(self) -> list[Parameter]:
        try:
            return list(inspect.signature(self.holds).parameters.values())
        except ValueError:  # a builtin without a signature
            return []


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """`invariants` empty: the outcome must be that of some serial order. `refusals`: exceptions by which an operation
    says that it has done nothing. `kinds`, `faults`, `most`: what may go wrong, how often in one schedule, and how
    often each kind. `budget`: seconds of real time. `slack`: how many seconds a worker may be late without any fault.
    `waits_only`: each operation has to wait for its turn and nothing else, so one that fails though no other worker is
    inside was kept out."""

    name: str
    workers: tuple[Worker, ...]
    setups: tuple[Callable[..., Any], ...] = ()
    invariants: tuple[Invariant, ...] = ()
    always: tuple[Invariant, ...] = ()
    refusals: tuple[type[BaseException], ...] = ()
    faults: int = 0
    kinds: frozenset[Fault] = frozenset()
    most: Most = ()
    budget: float = 60.0
    slack: float = 0.1
    isolation: str = ""
    #: what outcomes are compared without (ignored.py)
    ignore: tuple[str, ...] = ()
    control: bool = True
    waits_only: bool = False
    #: remove what protects it, one piece at a time (mutations.py)
    mutate: bool = False
    #: which part of a comparison (comparisons.py): which pair, which level
    part: str = ""

    #: is a schedule followed beyond a deadlock, once with each of its workers as the victim?
    deadlocks: bool = True
    #: the workers of the second half are those of the first half, delivered again after a crash …
    redelivered: bool = False
    #: … or, without one, at any time: while the first one runs, or once it has ended
    twice: bool = False

    @property
    def callers(self) -> tuple[Worker, ...]:
        """The workers that begin by themselves."""
        return self.workers[: len(self.workers) // 2] if self.redelivered else self.workers

    @property
    def after_a_crash(self) -> bool:
        """Is a task delivered again only if its first delivery has crashed?"""
        return self.redelivered and not self.twice

    def again(self, index: int) -> int | None:
        """The number of the worker that does the same task again."""
        return index + len(self.callers) if self.redelivered and index < len(self.callers) else None

    @property
    def title(self) -> str:
        """Its name, and which part of a comparison it is."""
        return f"{self.name} ({self.part})" if self.part else self.name

    @property
    def names(self) -> dict[str, str]:
        """The engine's name of a worker → the user's name of it."""
        return dict(zip(string.ascii_uppercase, (each.name for each in self.workers), strict=False))


#: the user's words for the faults; each gives how often that fault may happen in one schedule
FAULT_WORDS: Mapping[str, frozenset[Fault]] = {
    "crashes": frozenset({Fault.CRASH}),
    "pauses": frozenset({Fault.PAUSE}),
    "lost_replies": frozenset({Fault.LOST_REPLY}),
    "failovers": frozenset({Fault.FAILOVER}),
    "clock_jumps": frozenset({Fault.CLOCK_JUMP}),
    "thread_deaths": frozenset({Fault.RENEWAL_DIES, Fault.RENEWAL_LIVES}),
}


def limits_of(faults: int, given: Mapping[str, int]) -> dict[str, Any]:
    """Which faults, and how many in one schedule, as fields of a Scenario: `faults` of any kind; or the named ones,
    each as often as given. Raises Mistake."""
    if unknown := given.keys() - FAULT_WORDS.keys():
        raise Mistake(f"there is no {sorted(unknown)[0]!r}: the faults are {', '.join(FAULT_WORDS)}")
    for word, count in {"faults": faults, **given}.items():
        if not isinstance(count, int) or count < 0:
            raise Mistake(f"{word} counts how many may come in one schedule: write {word}=1, not {count!r}")
    named = {word: count for word, count in given.items() if count}
    kinds = frozenset[Fault]().union(*(FAULT_WORDS[word] for word in named))
    number = faults or sum(named.values())
    if number > 5:
        raise Mistake(f"faults: 0 to 5 in one schedule, not {number}")
    most = (
        () if faults or len(named) < 2 else tuple((FAULT_WORDS[word], count) for word, count in named.items())
    )
    return {"faults": number, "kinds": kinds or frozenset(Fault), "most": most}


def invariants_of(given: Any, sentence: str = "") -> tuple[Invariant, ...]:
    """One or several: a callable, (callable, sentence), or a ready-made one. None, or 'serializable': no invariant."""
    if given is None or given == "serializable":
        return ()
    if isinstance(given, Invariant):
        return (given,)
    if isinstance(given, str):
        raise Mistake(
            f"the callable comes first, and then the sentence: ({given!r}, …) is the other way round"
        )
    if isinstance(given, Sequence) and not (len(given) == 2 and isinstance(given[1], str)):
        return tuple(one for each in given for one in invariants_of(each))
    holds, told = given if isinstance(given, Sequence) else (given, sentence)
    if isinstance(holds, type):
        told = f"{holds.__name__} is a class, and not yet an invariant"
        raise Mistake(f"{told}: call it with what it is about, as in never_below('account.balance')")
    if not callable(holds):
        told = f"an invariant is a callable that says whether all is well, not {holds!r}"
        raise Mistake(f"{told}. Write `lambda: Redemption.objects.count() <= 1`")
    told = (
        told
        or getattr(holds, "sentence", "")
        or f"{getattr(holds, '__name__', 'the invariant')} does not hold"
    )
    return (Invariant(holds, told),)
