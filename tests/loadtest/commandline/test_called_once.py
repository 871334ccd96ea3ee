"""What is no lock is reported before any server starts; a lock that needs its server is not judged without it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from redis import Redis

from loadtest.commandline.called_once import complaint
from loadtest.commandline.subjects import wanted


def raises(name: str) -> Any:
    raise RuntimeError("not today")


@contextmanager
def raises_inside(name: str) -> Iterator[None]:
    raise KeyError(name)
    yield


def no_context_manager(name: str) -> Any:
    return 42


def lacks(name: str, mongodb: Any) -> Any:
    return None


def ends_the_process(name: str) -> Any:
    import os

    os._exit(3)


@pytest.mark.parametrize(
    ("lock", "told"),
    [
        (raises, "raises at once: RuntimeError: not today (test_called_once.py, line "),
        (raises_inside, "raises at once: KeyError: 'a-name'"),
        (no_context_manager, "is not a lock: it returned 42, which is not a context manager"),
        (lacks, "asks for `mongodb`, which the lab does not offer"),
        (ends_the_process, "ends the process that enters it"),
    ],
)
def test_what_is_no_lock_is_reported_in_a_sentence(lock: Any, told: str) -> None:
    assert complaint(lock).startswith(told)


@contextmanager
def fails_without_its_server(name: str, redis: Redis) -> Iterator[None]:
    try:
        redis.get(name)
    except Exception:  # noqa: BLE001
        raise KeyError(name) from None
    yield


@contextmanager
def tries_for_ever(name: str, redis: Redis) -> Iterator[None]:
    while True:
        try:
            redis.get(name)
        except BaseException:  # noqa: BLE001
            time.sleep(0.01)
    yield


@contextmanager
def asks_the_database(name: str) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    yield


@pytest.mark.parametrize(
    "lock",
    [
        lambda name, redis: redis.lock(name, timeout=5),
        fails_without_its_server,
        tries_for_ever,
        asks_the_database,
    ],
)
def test_a_lock_that_has_asked_a_server_is_judged_no_further(
    lock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loadtest.commandline.called_once.WITHIN", 0.5)
    assert complaint(lock) == ""


def test_the_command_line_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Exception, match=r"--lock .*:no_context_manager is not a lock") as error:
        wanted({"lock": [f"{__name__}:no_context_manager"], "strategy": []})
    assert error.value.returncode == 2  # type: ignore[attr-defined]
