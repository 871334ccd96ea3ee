"""Stalled: nobody is paid any more, because a worker died between SETNX and EXPIRE.

The lock is to end by itself if its holder dies. But the lock and its end are two commands, and a process can die
between any two commands. The key stays without an end, and every later run waits until a person deletes it.

    run 1                                run 2
    SETNX → 1
    (dies before EXPIRE)
                                         SETNX → 0, SETNX → 0, …

Mended: SET with NX and EX, one command.
"""

from __future__ import annotations

import time

from django.db import models

from lost_update_lab import worker
from museum.case import STALLED, Case, Form
from museum.outside import client


class PayRun(models.Model):
    name = models.CharField(max_length=20)


def nothing_paid():
    PayRun.objects.create(name="last month")


def pay(name):
    while not client().setnx("payrun", name):
        time.sleep(1)
    client().expire("payrun", 30)
    PayRun.objects.get_or_create(name="this month")
    client().delete("payrun")


def pay_one_command(name):
    while not client().set("payrun", name, nx=True, ex=30):
        time.sleep(1)
    PayRun.objects.get_or_create(name="this month")
    client().delete("payrun")


def runs(operation):
    return [worker("run 1", operation, "run 1"), worker("run 2", operation, "run 2")]


CRASH = {"faults": {"crashes": 1}, "untimed": "its waiter polls once a second"}

CASE = Case(
    source="laravel/horizon#1738",
    setup=nothing_paid,
    invariant=(lambda: PayRun.objects.filter(name="this month").count() <= 1, "paid twice"),
    broken=[
        Form(name="SETNX, then EXPIRE", workers=runs(pay), needs="crash", verdict=STALLED, **CRASH),
    ],
    mended=[Form(name="SET NX EX", workers=runs(pay_one_command), **CRASH)],
    cure="lease and fence",
)
