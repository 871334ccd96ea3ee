"""Violated: a payout is made twice, because the queue gives the task to a second worker while the first still runs.

With `acks_late` a task is acknowledged at its end, so that a dead worker's task is not lost. The queue hides it for 30
s. This one takes 60 s: nobody is dead, the time is over, and the next worker gets it.

    first worker                         second worker
    takes the task (hidden for 30 s)
    works …
                                         takes the task: 30 s are over
    pays out 100
                                         pays out 100

No time-out is long enough: how long a worker may stand still has no bound.

Mended: running the task again has no further effect. The provider gets an idempotency key, made of the task's id.
"""

from __future__ import annotations

import time

from django.db import models

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form
from museum.outside import client, provider


class Withdrawal(models.Model):
    state = models.CharField(max_length=20, default="open")


def one_task():
    Withdrawal.objects.create()


def take(name):
    """Until it is visible. → False: it was acknowledged"""
    while not client().set("task:1:hidden", name, nx=True, ex=30):
        time.sleep(1)
    return not client().exists("task:1:acknowledged")


def run(name, seconds, key):
    if not take(name):
        return
    if Withdrawal.objects.get(pk=1).state == "open":
        time.sleep(seconds)
        provider.refund("Ann", 100, key)
        Withdrawal.objects.filter(pk=1).update(state="paid")
    client().set("task:1:acknowledged", 1)
    client().delete("task:1:hidden")


def workers(seconds, key):
    return [worker(f"{name} worker", run, name, seconds, key) for name in ("first", "second")]


POLLS = "its waiter polls once a second"

CASE = Case(
    source="celery/celery#5935; pretix/pretix#2058",
    setup=one_task,
    invariant=(lambda: provider.done("refund Ann") <= 1, "the payout was made twice"),
    broken=[
        Form(
            name="longer than it is hidden", workers=workers(60, ""), verdict=VIOLATED, untimed="60 s a try"
        ),
        Form(
            name="a pause is enough",
            workers=workers(0, ""),
            faults={"pauses": 1},
            needs="pause",
            untimed=POLLS,
            verdict=VIOLATED,
        ),
    ],
    mended=[
        Form(name="the provider's key", workers=workers(60, "payout-1"), untimed="60 s a try"),
        Form(
            name="the provider's key, under a pause",
            workers=workers(0, "payout-1"),
            mends="a pause is enough",
            untimed=POLLS,
            faults={"pauses": 1},
        ),
    ],
    cure="the provider's key",
)
