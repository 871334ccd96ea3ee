"""What a call was given, as source: a scenario that reads it gives the same again."""

from __future__ import annotations

import datetime
import json
import os
import zoneinfo
from collections.abc import Callable
from decimal import Decimal
from types import FrameType
from uuid import UUID

import psycopg
import pytest
import redis
from django.http import HttpRequest
from django.test import RequestFactory
from psycopg.types.json import Jsonb
from sqlalchemy.orm import Session, make_transient_to_detached

from lost_update_lab.suggest.literals import IMPORTED_NAME, CannotBeWritten, call_of, source, written
from tests.lost_update_lab.suggest import values
from tests.lost_update_lab.suggest.values import Colour, Counting, Line, Order, Pair, Service, Voucher

HERE = "«tests.lost_update_lab.suggest.values:"
AT = datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC)


def plain(text: str) -> str:
    return text.replace("tests.lost_update_lab.suggest.values:", "").replace("«", "").replace("»", "")


@pytest.mark.parametrize(
    "value",
    [
        Decimal("1.50"),
        UUID(int=7),
        AT,
        AT.astimezone(zoneinfo.ZoneInfo("Europe/Berlin")),
        datetime.timedelta(days=2),
        Colour.RED,
        Line("A", Decimal(3)),
        Pair(1, 2),
        Order(code="XMAS", lines=[1, 2]),
        {"lines": [Line("A", Decimal(1))], "at": AT.date()},
        (1,),
        {1, 2},
        frozenset(),
        Service,
        True,
        b"raw",
    ],
    ids=str,
)
def test_a_value_comes_back(value: object) -> None:
    text = IMPORTED_NAME.sub(r"\2", source(value))
    names = {**vars(values), "datetime": datetime, "zoneinfo": zoneinfo, "UUID": UUID, "Decimal": Decimal}
    assert eval(text, names) == value


def test_json_as_django_gives_it_to_psycopg() -> None:
    """No scenario could be written for a table with a JSONField."""
    value = Jsonb({"at": AT}, dumps=lambda each: json.dumps(each, default=str))
    text = IMPORTED_NAME.sub(r"\2", source(value))
    assert eval(text, {"Jsonb": Jsonb}).obj == {"at": str(AT)}


def read(request: HttpRequest) -> HttpRequest:
    """As a middleware reads it, which looks for a token in the form."""
    assert request.POST["sku"]
    return request


@pytest.mark.parametrize(
    ("frame", "call"),
    [
        (lambda: values.buy("A", 2), "buy(what='A', how_many=2)"),
        (
            lambda: values.buy(Line("A", Decimal(1))),
            "buy(what=Line(sku='A', amount=Decimal('1'), colour=Colour.RED), how_many=1)",
        ),
        (lambda: Service("first").redeem("XMAS"), "Service(bank='first', most=3).redeem(code='XMAS')"),
        (lambda: Service.refund("XMAS"), "Service.refund(code='XMAS')"),
        (lambda: values.several(), "several()"),
        (
            lambda: values.buy(RequestFactory().post("/buy/?a=1", b"{}", content_type="application/json")),
            "buy(what=request('POST', '/buy/?a=1', b'{}', 'application/json'), how_many=1)",
        ),
        (
            lambda: values.buy(read(RequestFactory().post("/buy/", {"sku": "A"}))),
            "buy(what=request('POST', '/buy/', b'sku=A', 'application/x-www-form-urlencoded'), how_many=1)",
        ),
        (
            lambda: values.buy(redis.Redis(decode_responses=True)),
            'buy(what=redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True), how_many=1)',
        ),
    ],
)  # fmt: skip
def test_a_call(frame: Callable[[], FrameType], call: str) -> None:
    assert plain(call_of(frame())) == call


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (lambda: values.buy(object()), "its argument 'what' is no value that can be written down: object"),
        (lambda: values.several("A"), r"several was given \*args or \*\*keywords"),
        (lambda: Counting("first").redeem("A"), "its argument 'self' .*: Counting, which does not keep its 'bank'"),
        (values.inner, "is a function inside of another one, or has no name"),
        (lambda: values.by_session(Voucher(code="A"), Session()), "'voucher' is a row that is not stored yet"),
    ],
)  # fmt: skip
def test_why_a_call_cannot_be_written_down(frame: Callable[[], FrameType], why: str) -> None:
    with pytest.raises(CannotBeWritten, match=why):
        call_of(frame())


def test_a_row_of_sqlalchemy_comes_from_the_workers_own_session() -> None:
    make_transient_to_detached(voucher := Voucher(code="XMAS"))
    told = plain(call_of(values.by_session(voucher, Session())))
    assert told.startswith("call(by_session, session=(session := sqlalchemy.orm:Session(")
    assert told.endswith("voucher=session.get(Voucher, ('XMAS',)))")


def test_a_connection_is_the_workers_own() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"]) as db:
        told = plain(call_of(values.buy(db)))
    assert told == 'call(buy, what=psycopg.connect(os.environ["DATABASE_URL"], autocommit=False), how_many=1)'


def test_what_raises_when_it_is_looked_at_has_no_source() -> None:
    class Odd:
        @property
        def _meta(self) -> str:
            raise RuntimeError("not now")

    assert written(Odd()) is None
