"""Whatever calls an operation may be a worker: a view, an endpoint, the body of a task, a management command. Of each,
the broken form is violated, and the mended form is exhausted."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from io import StringIO
from typing import Any

import celery
import procrastinate
import psycopg
import pytest
from django.core.management import BaseCommand, call_command
from django.http import HttpRequest, JsonResponse
from django.test import RequestFactory
from procrastinate.testing import InMemoryConnector
from redis import Redis
from rest_framework.decorators import api_view, authentication_classes, permission_classes
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory
from rq.decorators import job

from lost_update_lab import Result
from tests.lost_update_lab.scenarios.shop import READ, one_voucher

Trial = Callable[..., Result]


def redeem(locks: bool) -> bool:
    """The service function that all of them call."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as db:
        row = db.execute(READ + " FOR UPDATE" * locks, ["XMAS"]).fetchone()
        assert row
        if row[0] > 0:
            db.execute("UPDATE voucher SET uses = %s WHERE code = 'XMAS'", [row[0] - 1])
    return row[0] > 0


def view(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"redeemed": redeem("locks" in request.GET)})


def by_a_view(locks: bool) -> Any:
    return view(RequestFactory().post("/redeem/?locks" if locks else "/redeem/"))


@api_view(["POST"])
@authentication_classes([])
@permission_classes([])
def endpoint(request: Request) -> Response:
    return Response({"redeemed": redeem(request.data["locks"])})


def by_an_endpoint_of_drf(locks: bool) -> Any:
    return endpoint(APIRequestFactory().post("/redeem/", {"locks": locks}, format="json")).data


queue = celery.Celery("shop", broker="memory://")
queue.conf.task_always_eager = True


@queue.task
def redeem_in_celery(locks: bool) -> bool:
    return redeem(locks)


@queue.task
def returns_one() -> int:
    return 1


def by_celery(locks: bool) -> Any:
    """`get()` asks a variable of Celery's whole process whether a task runs."""
    return redeem_in_celery.delay(locks).get()


later = procrastinate.App(connector=InMemoryConnector())


@later.task
def redeem_in_procrastinate(locks: bool) -> bool:
    return redeem(locks)


@job("default", connection=Redis())
def redeem_in_rq(locks: bool) -> bool:
    return redeem(locks)


class Redeem(BaseCommand):
    requires_system_checks = ()

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--locks", action="store_true")

    def handle(self, *args: object, **options: Any) -> str:
        return str(redeem(options["locks"]))


def by_a_management_command(locks: bool) -> Any:
    return call_command(Redeem(stdout=StringIO()), locks=locks)


async def by_a_coroutine(locks: bool) -> Any:
    await asyncio.sleep(1)
    return redeem(locks)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    "kind",
    [
        by_a_view,
        by_celery,
        by_an_endpoint_of_drf,
        redeem_in_procrastinate,
        redeem_in_rq,
        by_a_management_command,
        by_a_coroutine,
    ],
    ids=lambda kind: getattr(kind, "__name__", type(kind).__name__),
)
def test_the_broken_form_is_violated_and_the_mended_one_exhausted(trial: Trial, kind: Any) -> None:
    broken = trial([(kind, False)] * 2, setup=one_voucher)
    assert (broken.verdict, broken.exhausted) == ("violated", True)
    assert "test_kinds_of_workers.py" in str(broken)
    mended = trial([(kind, True)] * 2, setup=one_voucher, crashes=1)
    assert (mended.verdict, mended.exhausted) == ("kept", True)


def test_a_task_of_celery_that_was_cut_off_leaves_nothing(trial: Trial) -> None:
    """No task of the user's program could wait for its result any more."""
    trial([(by_celery, False)] * 2, setup=one_voucher, crashes=1)
    assert returns_one.delay().get() == 1
