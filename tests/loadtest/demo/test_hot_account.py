"""The hot-account article's experiment (A9): what its code can print, and what it cannot."""

from __future__ import annotations

from collections import Counter
from threading import Barrier

from redis import Redis

from loadtest.demo.hot_account import TASKS, Experiment

#: the printed log: which thread wrote which amount
PRINTED = [(5, 1), (4, 1), (3, 1), (1, 1), (1, 2), (2, 2), (5, 2), (4, 3), (1, 4), (3, 5)]


def threads(experiment: Experiment) -> Counter[str]:
    return Counter(name for name, _ in experiment.log)


def printed() -> Counter[str]:
    return Counter(f"pool-1-thread-{number}" for number, _ in PRINTED)


def test_as_published_each_of_ten_threads_writes_one_line(redis_client: Redis) -> None:
    experiment = Experiment(redis_client)
    final = experiment.run()
    assert 1 <= final <= TASKS
    assert threads(experiment) == dict.fromkeys((f"pool-1-thread-{n}" for n in range(1, 11)), 1)
    assert threads(experiment) != printed(), "the printed log is not of this code"


def test_the_printed_log_fits_a_pool_of_five(redis_client: Redis) -> None:
    experiment = Experiment(redis_client, pool=5)
    experiment.run()
    assert threads(experiment).keys() == printed().keys()
    assert threads(experiment).total() == printed().total() == TASKS


def test_when_all_read_before_one_writes_nine_are_lost(redis_client: Redis) -> None:
    assert Experiment(redis_client, between=Barrier(TASKS).wait).run() == 1
