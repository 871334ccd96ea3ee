"""What is drawn at random: among few, as a name, for a sleep, by the server; and the seed of Python's hash()."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from lost_update_lab import Mistake, explore
from lost_update_lab.model.errors import CHOOSE_BEFORE
from lost_update_lab.schedule.random_choice import DECIDES

#: bound before a gate is there
CHOOSE = (random.choice,)


@dataclass(frozen=True)
class Place:
    name: str


PLACES = {Place("lobby"): 1}


def order_number(redis: Any) -> int:
    """Six digits, and nobody looks whether they are taken."""
    number = random.randint(100_000, 999_999)
    redis.setnx(f"order {number}", 1)
    return number


def by_choice(redis: Any) -> str:
    taken: str = CHOOSE[0](["a", "b", "c"])
    redis.setnx(taken, 1)
    return taken


def by_secret(redis: Any) -> int:
    taken = secrets.randbelow(1000)
    redis.setnx(f"code {taken}", 1)
    return taken


def result_only(redis: Any) -> int:
    redis.incr("draws")
    return random.randrange(3)


def every_second(redis: Any) -> int:
    redis.incr("draws")
    return random.randrange(0, stop=6, step=2)


def one_of_choices(redis: Any) -> int:
    redis.incr("draws")
    return random.choices([1, 2, 3])[0]


@pytest.fixture
def trial(scenario_urls: tuple[str, str]) -> Callable[..., Any]:
    def trial(operation: Callable[..., Any], **options: Any) -> Any:
        urls = {"database": scenario_urls[0], "redis": scenario_urls[1], "disposable": True}
        return explore([operation, operation], control=False, **urls, **options)

    return trial


def different(one: object, other: object) -> bool:
    return one != other


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(
    "operation", [order_number, by_choice, by_secret, result_only, every_second, one_of_choices]
)
def test_a_draw_among_few_is_not_kept(trial: Callable[..., Any], operation: Callable[..., Any]) -> None:
    """Two real processes draw the same now and then. One outcome of each draw is explored: by luck the one that breaks
    the invariant, or another one."""
    found = trial(operation, invariant=different)
    assert found.verdict in ("inconclusive", "violated"), found
    if found.verdict == "inconclusive":
        assert found.cause.startswith(f"{DECIDES} (drawn in {__name__}.")
        assert found.remedy == CHOOSE_BEFORE


@pytest.mark.deep
def test_a_choice_that_a_closure_has_kept_is_drawn_again(trial: Callable[..., Any]) -> None:
    assert trial(by_choice, invariant=different).verdict == trial(by_choice, invariant=different).verdict


def by_token(redis: Any) -> None:
    token = "".join(secrets.choice("0123456789abcdef") for _ in range(32))
    while not redis.set("lock", token, nx=True):
        time.sleep(random.choice([1, 2, 3]))
    redis.set("count", int(redis.get("count") or 0) + 1)
    redis.delete("lock")


@pytest.mark.deep
def test_a_token_made_letter_by_letter_is_a_name_and_a_drawn_sleep_decides_nothing(
    trial: Callable[..., Any],
) -> None:
    assert trial(by_token).kept


def random_member(redis: Any) -> Any:
    return redis.srandmember("codes")


def in_a_script(redis: Any) -> Any:
    return redis.eval("return redis.call('SRANDMEMBER', KEYS[1])", 1, "codes")


def random_row(sql: Any) -> None:
    sql.execute("UPDATE code SET used = true WHERE n = (SELECT n FROM code ORDER BY random() LIMIT 1)")


def setup(redis: Any, sql: Any) -> None:
    redis.sadd("codes", 1, 2, 3)
    sql.execute("DROP TABLE IF EXISTS code; CREATE TABLE code (n int PRIMARY KEY, used bool)")
    sql.execute("INSERT INTO code SELECT n, false FROM generate_series(1, 100) n")


@pytest.mark.parametrize(
    ("operation", "what"),
    [(random_member, "SRANDMEMBER"), (in_a_script, "SRANDMEMBER"), (random_row, "UPDATE code SET used")],
)
def test_a_server_that_chooses_is_named(
    trial: Callable[..., Any], operation: Callable[..., Any], what: str
) -> None:
    with pytest.raises(Mistake, match=rf"the server chooses at random \({what}"):
        trial(operation, setup=setup)


def locked_by_hash(redis: Any) -> None:
    assert PLACES[Place("lobby")] == 1  # its own hash is the one that the dict was made with
    key = f"lock:{hash('account 7') % 2**61}"
    while not redis.set(key, 1, nx=True):
        time.sleep(1)
    redis.set("count", int(redis.get("count") or 0) + 1)
    redis.delete(key)


def locked_by_seed(redis: Any) -> None:
    """The same "random" token in each process: whoever holds it, it is mine."""
    random.seed(42)
    token = str(random.random())
    while not redis.set("lock", token, nx=True) and redis.get("lock").decode() != token:
        time.sleep(1)
    redis.set("count", int(redis.get("count") or 0) + 1)
    redis.delete("lock")


@pytest.mark.deep
@pytest.mark.parametrize("operation", [locked_by_hash, locked_by_seed])
def test_each_process_has_a_hash_seed_of_its_own_and_the_random_seed_that_it_sets(
    trial: Callable[..., Any], operation: Callable[..., Any]
) -> None:
    assert trial(operation).verdict == "violated"
