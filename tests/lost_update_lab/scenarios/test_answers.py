"""Without an invariant: what counts of the objects that operations return."""

from __future__ import annotations

import datetime
import enum
import ipaddress
import itertools
from collections import deque
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import attrs
import psycopg
import pydantic
import pytest
from django.db import models

from lost_update_lab import Result
from lost_update_lab.scenarios.result import KEPT
from lost_update_lab.under_test.operations import REFUSED, VIOLATED
from lost_update_lab.under_test.results import ResultText, unsteady

Trial = Callable[..., Result]


class Said(enum.Enum):
    OK = 1
    SOLD_OUT = 2


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class SaysIt:
    def __init__(self, got: object) -> None:
        self.got = got

    def __repr__(self) -> str:
        return f"SaysIt({self.got})"


class ComparesIt:
    def __init__(self, got: object) -> None:
        self._got = got

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComparesIt) and self._got == other._got

    def __hash__(self) -> int:
        return hash(self._got)


class Slotted:
    __slots__ = ("got",)

    def __init__(self, got: object) -> None:
        self.got = got


class ByPydantic(pydantic.BaseModel):
    got: bool


@attrs.define
class ByAttrs:
    got: bool


class Silent:
    def __init__(self, got: object) -> None:
        self.got = got


class LastingAddress(Silent):
    def __repr__(self) -> str:
        return f"<LastingAddress at {id(self):#x}>"


class OfDjango(models.Model):
    class Meta:
        app_label = "answers"

    def __str__(self) -> str:
        raise AssertionError("it may be lazy: it is not asked")


WAYS: dict[str, Callable[[bool], Any]] = {
    "enum": lambda got: Said.OK if got else Said.SOLD_OUT,
    "flag": lambda got: Rights.READ | Rights.WRITE if got else Rights.READ,
    "timedelta": lambda got: datetime.timedelta(1 + got),
    "time": lambda got: datetime.time(1 + got),
    "address": lambda got: ipaddress.ip_address(f"10.0.0.{1 + got}"),
    "range": lambda got: range(1 + got),
    "complex": complex,
    "psycopg's range": lambda got: psycopg.types.range.Range(1, 2 + got),
    "deque": lambda got: deque([got]),
    "values of a dict": lambda got: {1: got}.values(),
    "keys of a dict": lambda got: {got: 1}.keys(),
    "an error": ValueError,
    "a namespace": lambda got: SimpleNamespace(got=got),
    "own text": SaysIt,
    "own comparison": ComparesIt,
    "slots": Slotted,
    "pydantic": lambda got: ByPydantic(got=got),
    "attrs": ByAttrs,
    "in a list": lambda got: [{"said": Said.OK if got else Said.SOLD_OUT}],
}


def one_seat(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS seat; CREATE TABLE seat (id int PRIMARY KEY, taken bool)")
    sql.execute("INSERT INTO seat VALUES (1, false)")


def takes(tells: Callable[[bool], Any], sql: Any) -> Any:
    (taken,) = sql.execute("SELECT taken FROM seat").fetchone()
    if not taken:
        sql.execute("UPDATE seat SET taken = true")
    return tells(not taken)


@pytest.mark.deep_after(4)
@pytest.mark.parametrize("way", WAYS)
def test_two_who_are_told_that_they_have_the_seat(trial: Trial, way: str) -> None:
    """The rows are those of either order: only what the two are told is wrong."""
    result = trial([(takes, WAYS[way])] * 2, setup=one_seat, control=False)
    assert result.verdict == VIOLATED
    assert not [note for note in result.notes if "by its class" in note]


@pytest.mark.parametrize("tells", [Silent, LastingAddress, lambda got: (each for each in [got])])
def test_what_is_compared_by_its_class_only_is_said(trial: Trial, tells: Callable[[bool], Any]) -> None:
    result = trial([(takes, tells)] * 2, setup=one_seat, control=False)
    (note,) = [note for note in result.notes if "compared by its class only" in note]
    assert result.verdict == KEPT
    assert type(tells(True)).__qualname__ in note


def test_a_cursor_is_no_answer(trial: Trial) -> None:
    def looks(sql: Any) -> Any:
        return sql.execute("SELECT taken FROM seat")

    result = trial([looks, looks], setup=one_seat, control=False)
    assert not [note for note in result.notes if "by its class" in note]


def numbered(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS numbered; CREATE TABLE numbered (id serial PRIMARY KEY, who text)")


def is_told_its_number(who: str, sql: Any) -> SaysIt:
    row = sql.execute("INSERT INTO numbered (who) VALUES (%s) RETURNING id", (who,)).fetchone()
    sql.execute("SELECT 1")
    return SaysIt(row[0])


def test_the_number_of_a_row_in_a_text_stands_for_the_row(trial: Trial) -> None:
    """Two orders give the same row two numbers: as a mere text, one of them was no answer of a serial order."""
    workers = [partial(is_told_its_number, who) for who in ("Ann", "Bob")]
    assert trial(workers, setup=numbered, control=False).verdict == KEPT


_counted = itertools.count()


class Counted:
    """It says something else each time, and no module holds what it counts by."""

    def __repr__(self) -> str:
        return f"Counted({next(_counted)})"


def test_what_says_something_else_in_each_run_does_not_count() -> None:
    assert [*unsteady([Counted(), SaysIt(1)], [Counted(), SaysIt(1)])] == [Counted]
    told = ResultText.of(Counted(), unsteady={Counted})
    assert (told.plain, told.by_class) == ("a Counted", (Counted,))


def test_the_object_of_an_orm_is_not_asked() -> None:
    told = ResultText.of([OfDjango(), OfDjango.objects.none()])
    assert told.by_class[0] is OfDjango


def test_a_number_that_is_none_is_equal_to_itself(trial: Trial) -> None:
    def answers(sql: Any) -> float:
        sql.execute("UPDATE seat SET taken = true")
        return float("nan")

    assert trial([answers, answers], setup=one_seat, control=False).verdict == KEPT


class Short(Exception):
    """There is not enough, but this."""


def two_pots(sql: Any) -> None:
    sql.execute("DROP TABLE IF EXISTS pot")
    sql.execute("CREATE TABLE pot (id int, held int)")
    sql.execute("INSERT INTO pot VALUES (1, 100), (2, 100)")


def checks(sql: Any) -> str:
    held = [sql.execute("SELECT held FROM pot WHERE id = %s", [pot]).fetchone()[0] for pot in (1, 2)]
    if sum(held) < 200:
        raise Short(sum(held))
    return "enough"


def takes_half(sql: Any) -> None:
    sql.execute("UPDATE pot SET held = held - 50")


def test_what_an_error_says_counts(trial: Trial) -> None:
    """Of an error only the class was compared: that there are 150 left is true at no time."""
    result = trial([checks, takes_half], setup=two_pots, control=False)
    assert result.verdict == REFUSED
    assert any("Short: 150" in each for each in result.schedule.sentences)


def both_say_no(sql: Any) -> None:
    """Whoever comes second is told so. If both do it at once, both are, and nobody has anything."""
    sql.execute("UPDATE pot SET held = held - 60 WHERE id = 1")
    if sql.execute("SELECT held FROM pot WHERE id = 1").fetchone()[0] < 0:
        sql.execute("UPDATE pot SET held = held + 60 WHERE id = 1")
        raise Short("nothing left")


def test_an_error_with_known_words_is_an_answer(trial: Trial) -> None:
    """It says what it says in a serial order, so it is no failure of the call: it was `refused`."""
    assert trial([both_say_no] * 2, setup=two_pots, control=False).verdict == VIOLATED


def says_no_too_late(sql: Any) -> None:
    """It says that another one has come between, and has written all the same."""
    held = [sql.execute("SELECT held FROM pot WHERE id = 1").fetchone()[0]]
    sql.execute("UPDATE pot SET held = held - 10 WHERE id = 1")
    held += sql.execute("SELECT held FROM pot WHERE id = 1").fetchone()
    if held[1] != held[0] - 10:
        raise Short("try again")


def test_what_refuses_has_done_nothing(trial: Trial) -> None:
    """A refusal was believed: whatever was found done was no difference to nothing."""
    result = trial([says_no_too_late] * 2, setup=two_pots, control=False, refusals=[Short])
    assert result.verdict == REFUSED
