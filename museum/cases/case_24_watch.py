"""Violated: points are lost in Redis, because WATCH and MULTI only work together, and on one connection.

WATCH makes EXEC fail if a key has changed since. Without MULTI there is no EXEC that could fail. Without WATCH the EXEC
never fails. And any EXEC on the same connection ends the watch: here a metric that is counted in between.

    Ann                                  Bob
    WATCH, GET → 100
                                         WATCH, GET → 100
    SET 110
                                         SET 120: no EXEC, so nothing is checked

Mended: WATCH, GET, MULTI, SET, EXEC on one connection, and again on WatchError; or INCRBY, one command.
"""

from __future__ import annotations

from redis import WatchError

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form
from museum.outside import client


def hundred_points():
    client().set("points", 100)


def watch_without_multi(points):
    with client().pipeline() as pipe:
        pipe.watch("points")
        had = int(pipe.get("points"))
        pipe.set("points", had + points)


def multi_without_watch(points):
    had = int(client().get("points"))
    with client().pipeline(transaction=True) as pipe:
        pipe.set("points", had + points)
        pipe.execute()


def watch_and_another_exec(points):
    with client().client() as one_connection:
        one_connection.execute_command("WATCH", "points")
        had = int(one_connection.get("points"))
        with one_connection.pipeline(transaction=True) as metrics:
            metrics.incr("metric:reads")
            metrics.execute()
        with one_connection.pipeline(transaction=True) as pipe:
            pipe.set("points", had + points)
            pipe.execute()


def watch_and_multi(points):
    with client().pipeline() as pipe:
        while True:
            try:
                pipe.watch("points")
                had = int(pipe.get("points"))
                pipe.multi()
                pipe.set("points", had + points)
                pipe.execute()
            except WatchError:
                continue
            return


def increment(points):
    client().incrby("points", points)


def two(operation):
    return [worker("Ann", operation, 10), worker("Bob", operation, 20)]


CASE = Case(
    source="redis/redis-py#1031",
    setup=hundred_points,
    invariant=(lambda ann, bob: int(client().get("points")) == 130, "points are gone"),
    broken=[
        Form(name="WATCH without MULTI", workers=two(watch_without_multi), verdict=VIOLATED),
        Form(name="MULTI without WATCH", workers=two(multi_without_watch), verdict=VIOLATED),
        Form(name="another EXEC on the connection", workers=two(watch_and_another_exec), verdict=VIOLATED),
    ],
    mended=[
        Form(name="WATCH and MULTI, again on a conflict", workers=two(watch_and_multi)),
        Form(name="INCRBY", workers=two(increment)),
    ],
    cure="conditional UPDATE",
)
