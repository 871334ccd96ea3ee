"""The verdict on one schedule: do the invariants hold? Without any, is its outcome that of some serial order?"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from lost_update_lab.model.gaps import AN_HOUR, Lease
from lost_update_lab.model.system import STALLED, UNBROKEN, Ending, Judgement
from lost_update_lab.scenarios.commits import holds
from lost_update_lab.scenarios.delivered_twice import called_twice, deliveries
from lost_update_lab.scenarios.serial import Serial, SerialOrders, prefixes
from lost_update_lab.scenarios.taken_results import TakenResults
from lost_update_lab.under_test.false_results import false_error
from lost_update_lab.under_test.fresh import NOW, RANDOM
from lost_update_lab.under_test.operations import REFUSED, VIOLATED, FinishedSchedule, is_struck
from lost_update_lab.under_test.outcome import NEW, Outcome
from lost_update_lab.under_test.scenario import Invariant, Mistake, Scenario

#: PostgreSQL's code for a deadlock, and MariaDB's
DEADLOCK = frozenset({"40P01", 1213})
#: what stands for a new row, or a random key, with the digest by which it is told
_STANDS_FOR = re.compile(f"((?:{NEW}|{RANDOM}) [0-9a-f]{{4}})[0-9a-f]+")
SERIALIZABLE = "the outcome is that of no serial order"
NOT_BETWEEN = (
    "it matches {}, but no such time passed here: a worker was still running. If it is right all the same, give an "
    "invariant that says what must hold"
)
BETWEEN = (
    "an outcome that matches {} was also accepted where that time passed between the workers. If that is wrong, give "
    "an invariant that says what must hold"
)
ABORTED = (
    "in some orders the database aborts {} (deadlock), and nobody tries again. The invariant allows that; a search "
    "without one calls it stalled"
)


class Judge:
    """The judge of one scenario. `serial`: None as long as no order may be run. `answers`: do they count? Else only
    what is left does, and only if each worker says what it says in some serial order: "try again" is no such answer."""

    def __init__(self, scenario: Scenario, answers: bool = True) -> None:
        self.scenario, self.answers = scenario, answers
        self.serial: SerialOrders | None = None
        #: the serial orders with gaps that schedules were found equal to, in words
        self.with_gaps: dict[str, None] = {}
        #: the workers that were a deadlock's victims, and whose callers heard of it, which no invariant asks for
        self.aborted = set[str]()
        #: (worker, class of its error) → the error, of those that failed while no fault struck them
        self.failed: dict[tuple[str, type[BaseException]], str] = {}
        #: (worker, one of its commands that returns rows in no order): the order of its answer was let pass
        self.unordered: dict[tuple[str, str], None] = {}
        #: what invariants that take results were given
        self.taken = TakenResults()

    def __call__(self, observed: FinishedSchedule) -> Judgement:
        if found := [*observed.broken, *self._broken(observed)]:
            said = [line for law in self.scenario.invariants if law.sentence in found for line in law.said]
            return Judgement(VIOLATED, tuple(found), more=partial(tuple, said))
        if found := list(self._stalls(observed)):
            return Judgement(STALLED, tuple(found))
        if self.scenario.invariants:
            self._note_failures(observed.endings)
            return Judgement(UNBROKEN)
        if self.serial is None or not self.serial.closed:
            return Judgement(UNBROKEN)
        ways = deliveries(observed, len(self.scenario.callers)) if self.scenario.twice else [observed]
        judged = [self._as_once(each) for each in ways]
        return next((each for each in judged if each.word == UNBROKEN), judged[0])

    def _broken(self, observed: FinishedSchedule) -> Iterator[str]:
        for invariant in self.scenario.invariants:
            results = invariant.taken(self._returned(observed)) if invariant.takes_results else ()
            if not self._holds(invariant, results, observed.endings):
                yield invariant.sentence
            else:
                self.taken.add(invariant, results)

    def _holds(self, invariant: Invariant, results: Sequence[Any], endings: Sequence[Ending]) -> bool:
        try:
            return holds(invariant, *results)
        except Mistake as mistake:
            names = self.scenario.names
            failed = [f"{names[each.worker]} failed: {_shown(each.error)}" for each in endings if each.error]
            if not failed:
                raise
            raise Mistake(f"{mistake} ({'; '.join(failed)})") from mistake.__cause__

    def _returned(self, observed: FinishedSchedule) -> list[Any]:
        """Those of the workers that begin by themselves; if one crashed, that of its second delivery. Errors are
        false."""
        found = [false_error(each) if isinstance(each, BaseException) else each for each in observed.results]
        endings = observed.endings
        again = [self.scenario.again(index) for index in range(len(self.scenario.callers))]
        return [
            found[index if second is None or not endings[index].crashed else second]
            for index, second in enumerate(again)
        ]

    def _stalls(self, observed: FinishedSchedule) -> Iterator[str]:
        names = self.scenario.names
        if observed.stuck:
            waiting = [names[each.worker] for each in observed.endings if each.waiting]
            yield f"{' and '.join(waiting)} can never go on: what is waited for will not come"
        for ending in observed.endings:
            named = isinstance(ending.error, self.scenario.refusals or ())
            if is_deadlock(ending.error) and not named:
                if self.scenario.invariants:
                    self.aborted.add(names[ending.worker])
                else:
                    yield f"{names[ending.worker]} was aborted by the database: deadlock"
            if self.scenario.waits_only and ending.error and ending.alone and not ending.struck:
                yield f"{names[ending.worker]} was kept out ({_shown(ending.error)}) though no live worker was inside"

    def _note_failures(self, endings: Sequence[Ending]) -> None:
        for each in endings:
            error = each.error
            if error and _is_whole(each) and not (self._says_no(error) or is_deadlock(error)):
                self.failed.setdefault((each.worker, type(error)), _shown(error))

    # -- the default: some serial order -----------------------------------------------------------------------------

    def _as_once(self, observed: FinishedSchedule) -> Judgement:
        found = self._serializable(observed)
        if found.word != UNBROKEN or not (self.serial and self.scenario.twice):
            return found
        names = [each.name for each in self.scenario.callers]
        twice = list(called_twice(names, observed.endings, self.serial.calls_again))
        return Judgement(VIOLATED, tuple(twice)) if twice else found

    def _serializable(self, observed: FinishedSchedule) -> Judgement:
        """A worker that was cut off, or struck, has done each operation or not. What it was told does not count. If
        that worker was delivered again, and has returned, each operation has happened, and once."""
        endings = observed.endings
        callers = range(len(self.scenario.callers))
        whole = [i for i in callers if _is_whole(endings[i])]
        if not (self.answers or all(self._is_known(observed, i) for i in whole)):
            return Judgement(UNBROKEN)
        again = self._done_again(endings)
        if self._some(observed, whole, self._cut(whole) - again):
            return self._failed_again(endings) or Judgement(UNBROKEN)
        refused = {i for i in whole if self._says_no(endings[i].error)}
        cut = self._cut(whole) - again
        others = [i for i in whole if i not in refused]
        if refused and self._some(observed, others, refused | cut, refused):
            return self._failed_again(endings) or Judgement(UNBROKEN)
        failed = {i for i in whole if endings[i].error is not None and not self._is_answer(observed, i)}
        if failed and self._some(observed, [i for i in whole if i not in failed], failed | cut):
            return self._failed(endings[i] for i in sorted(failed))
        judged = replace(observed, endings=())  # these may hold connections
        return Judgement(VIOLATED, (SERIALIZABLE,), more=partial(self._unlike, judged, whole, cut))

    def _is_answer(self, observed: FinishedSchedule, worker: int) -> bool:
        """Does this worker raise the same in some serial order, with the same words? Then it says what it has done, as
        one that returns does. (Of a driver's error only the class is known.)"""
        assert self.serial
        answer = observed.outcome.answers[worker]
        return isinstance(answer[1], list) and any(
            answer == each.outcome.answers[worker] for each in self.serial.all()
        )

    def _is_known(self, observed: FinishedSchedule, worker: int) -> bool:
        """Does this worker say the same in some serial order?"""
        assert self.serial
        return any(
            self._told_the_same(observed.outcome, each.outcome, [worker]) for each in self.serial.all()
        )

    def _failed(self, endings: Iterable[Ending]) -> Judgement:
        told = [f"{self.scenario.names[each.worker]} failed: {_shown(each.error)}" for each in endings]
        return Judgement(REFUSED, (*told, "in no serial order does this call fail; nothing else is wrong"))

    def _seconds(self, endings: Sequence[Ending]) -> Iterator[tuple[int, Ending]]:
        """The workers whose task was delivered again, and how that delivery ended, as far as no fault struck it."""
        for index, first in enumerate(endings[: len(self.scenario.callers)]):
            second = self.scenario.again(index)
            if second is not None and (first.crashed or self.scenario.twice) and _is_whole(endings[second]):
                yield index, endings[second]

    def _done_again(self, endings: Sequence[Ending]) -> set[int]:
        """Those of which only the second delivery came to its end, and did the task, or found it done."""
        seconds = self._seconds(endings)
        return {i for i, second in seconds if not _is_whole(endings[i]) and second.error is None}

    def _failed_again(self, endings: Sequence[Ending]) -> Judgement | None:
        failed = [second for _, second in self._seconds(endings) if second.error is not None]
        failed = [second for second in failed if not self._says_no(second.error)]
        return self._failed(failed) if failed else None

    def _cut(self, whole: Sequence[int]) -> set[int]:
        return set(range(len(self.scenario.callers))) - set(whole)

    def _says_no(self, error: BaseException | None) -> bool:
        return isinstance(error, self.scenario.refusals) if self.scenario.refusals else False

    def _some(
        self, observed: FinishedSchedule, whole: Sequence[int], free: set[int], refused: Collection[int] = ()
    ) -> bool:
        """Is there a serial order that left the same, and told the same to the workers in `whole`? Those in `refused`
        have done nothing, or no more than one that is refused in that order, too."""
        serials = [serial for serial in self._serials(observed, free) if self._refuses(serial, refused)]
        same = (serial for serial in serials if self._same(observed, serial, whole))
        found = next(same, None) or self._in_another_order(observed, serials, whole)
        if found and found.gaps:
            self.with_gaps[self._in_words(found)] = None
        return found is not None

    def _in_another_order(
        self, observed: FinishedSchedule, serials: Collection[Serial], whole: Sequence[int]
    ) -> Serial | None:
        """A serial order that tells a worker the same rows in another order, where its query states none."""
        assert self.serial
        names = list(self.scenario.names)
        commands = self.serial.unordered
        any_order = [i for i in whole if names[i] in commands]
        same = (serial for serial in serials if self._same(observed, serial, whole, any_order))
        if found := next(same, None) if any_order else None:
            self.unordered |= {(names[i], commands[names[i]]): None for i in any_order}
        return found

    def _refuses(self, serial: Serial, refused: Collection[int]) -> bool:
        assert self.serial
        whole = [i for i in refused if serial.order.count(i) == self.serial.operations[i]]
        return all(self._says_no(serial.observed.endings[i].error) for i in whole)

    def _same(
        self,
        observed: FinishedSchedule,
        serial: Serial,
        whole: Sequence[int],
        any_order: Collection[int] = (),
    ) -> bool:
        outcome, other = observed.outcome, serial.outcome
        return outcome.left_the_same(other) and self._answered(outcome, other, whole, any_order)

    def _answered(
        self, outcome: Outcome, other: Outcome, workers: Sequence[int], any_order: Collection[int] = ()
    ) -> bool:
        return not self.answers or self._told_the_same(outcome, other, workers, any_order)

    def _told_the_same(
        self, outcome: Outcome, other: Outcome, workers: Sequence[int], any_order: Collection[int] = ()
    ) -> bool:
        kinds = [each.kind for each in self.scenario.workers]
        return outcome.answered_the_same(other, workers, kinds, any_order)

    def _serials(self, observed: FinishedSchedule, free: set[int]) -> Iterator[Serial]:
        """Of the workers in `free`, any number of operations may have happened; of the others, all."""
        assert self.serial
        operations = self.serial.operations
        for counts in prefixes(operations):
            if all(counts[i] == operations[i] for i in range(len(operations)) if i not in free):
                yield from (serial for serial in self.serial.of(counts) if serial.fits(observed.gaps))

    def _unlike(self, observed: FinishedSchedule, whole: Sequence[int], free: set[int]) -> Iterator[str]:
        yield from self._not_so(observed, whole)
        yield from self._nearest(observed, whole, free)

    def _not_so(self, observed: FinishedSchedule, whole: Sequence[int]) -> Iterator[str]:
        """Would it be right if leases had ended between the workers? Apart from its times: those are others then."""
        assert self.serial
        keys = replace(observed.outcome.keys, undisturbed=False)
        timeless = replace(observed, outcome=replace(observed.outcome, keys=keys))
        found = next((each for each in self.serial.all() if self._same(timeless, each, whole)), None)
        if found and found.gaps:
            yield NOT_BETWEEN.format(self._in_words(found))

    def _nearest(self, observed: FinishedSchedule, whole: Sequence[int], free: set[int]) -> Iterator[str]:
        """How the outcome differs from the serial order that is most like it."""
        if not (serials := list(self._serials(observed, free))):
            return
        outcome = observed.outcome

        def distance(other: Serial) -> int:
            here, there = outcome.rows_beside(other.outcome), other.outcome.rows_beside(outcome)
            wrong = [t for t in {*here, *there} if here.get(t) != there.get(t)]
            wrong += outcome.keys.unlike(other.outcome.keys)
            return 2 * len(wrong) + len([i for i in whole if not self._answered(outcome, other.outcome, [i])])

        best = min(serials, key=distance)
        names = list(self.scenario.names.values())
        yield f"the nearest serial order: {self._in_words(best)}{self._undone(best)}"
        rows, others = outcome.rows_beside(best.outcome), best.outcome.rows_beside(outcome)
        for table in sorted({*rows, *others}):
            here, there = rows.get(table), others.get(table)
            if here != there:
                yield f"{table}: {_rows('here', here, there)}; {_rows('there', there, here)}"
        for key in outcome.keys.unlike(best.outcome.keys):
            yield f"key {key}: {outcome.keys.told(best.outcome.keys, key)}"
        together = all(self._answered(outcome, best.outcome, [each]) for each in whole)
        for index in whole:
            here_, there_ = outcome.answers[index], best.outcome.answers[index]
            if here_ != there_ and (together or not self._answered(outcome, best.outcome, [index])):
                yield f"{names[index]}: here {_answer(*here_)}; there {_answer(*there_)}"

    def _undone(self, serial: Serial) -> str:
        """Of which workers nothing, or not all, happens in this serial order."""
        assert self.serial
        done = [serial.order.count(index) for index in range(len(self.serial.operations))]
        names = zip(self.scenario.names.values(), done, self.serial.operations, strict=False)
        return "".join(
            f", and {'a part' if count else 'nothing'} of {name}"
            for name, count, most in names
            if count < most
        )

    def _in_words(self, serial: Serial) -> str:
        names, told, gaps = list(self.scenario.names.values()), list[str](), list(serial.gaps)
        for place, index in enumerate(serial.order):
            before = set(serial.order[:place])
            while gaps and index not in gaps[0].ended and before.issuperset(gaps[0].ended):
                told.append(ends(gaps.pop(0).lease))
            told.append(names[index])
        return ", then ".join(told)


def _is_whole(ending: Ending) -> bool:
    return not is_struck(ending)


def ends(lease: Lease) -> str:
    """The end of this lease, in words."""
    return "an hour" if lease == AN_HOUR else f"the end of the lease of {lease[1]}"


def _answer(how: str, what: Any) -> str:
    if how == "raised" and isinstance(what, list):
        name, arguments, own = what
        told = [
            *map(repr, arguments),
            *(f"{key}={value!r}" for key, value in own.items() if value not in arguments),
        ]
        what = f"{name}({', '.join(told)})"
    return f"{how} {what}"


def _rows(where: str, rows: tuple[str, ...] | None, others: tuple[str, ...] | None) -> str:
    """The rows that the other outcome does not have."""
    if rows is None:
        return f"{where} as at the beginning"
    more = list((Counter(rows) - Counter(others or ())).elements())
    told = f"{where} {len(rows)} row{'s' * (len(rows) != 1)}"
    if more:
        told += f" (only {where}: {'; '.join(map(_row, more[:4]))}{'; …' * (len(more) > 4)})"
    return told


def _row(text: str) -> str:
    """Its values, besides the numbers and times that are another each time. Where nothing else is left, a time was
    computed: the other outcome has the one that it should be."""
    values = json.loads(text)
    told = [f"{name} {_shortly(value)}" for name, value in values.items() if value not in (NEW, NOW)]
    times = [f"{name} another time" for name, value in values.items() if value == NOW]
    return ", ".join(told or times) or "a row"


def _shortly(value: Any) -> Any:
    """What stands for a new row is long enough to tell it from the others."""
    return _STANDS_FOR.sub(r"\1", value) if isinstance(value, str) else value


def is_deadlock(error: BaseException | None) -> bool:
    """psycopg has PostgreSQL's code as an attribute. PyMySQL has MariaDB's as the first argument; its SQLSTATE is that
    of a serialization failure."""
    seen: list[BaseException] = []  # errors may name each other as their causes
    while error is not None and error not in seen:
        seen.append(error)
        told = (getattr(error, "sqlstate", None), *error.args[:1])  # of any type
        if any(each == code for each in told for code in DEADLOCK):
            return True
        error = error.__cause__
    return False


def _shown(error: BaseException | None) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".rstrip(": ")
