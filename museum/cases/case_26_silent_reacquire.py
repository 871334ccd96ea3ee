"""Violated: a deposit is lost under a lock, because a lock that has run out is silently taken again.

The batch holds the lock for 30 s and works for 60 s. Before it writes it calls `ensure()`: "do I still hold it?". The
helpful library takes the lock again if it is free. It is free: the other worker has come and gone. The batch holds the
lock once more, and writes what it has computed from the balance of a minute ago.

    batch                                deposit
    lock (30 s); read 100
    works for 60 s
                                         lock; 100 + 50; unlock
    ensure(): takes the lock again
    writes 100 + 10: the deposit is gone

Mended: the database decides, not the lock: the UPDATE asks for the version that was read.
"""

from __future__ import annotations

import time

from django.db import models
from django.db.models import F

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form
from museum.outside import client


class Reserve(models.Model):
    balance = models.IntegerField()
    version = models.IntegerField(default=1)


def one_reserve():
    Reserve.objects.create(balance=100)


def acquire(name):
    while not client().set("reserve", name, nx=True, ex=30):
        time.sleep(1)


def ensure(name):
    if client().get("reserve") != name:
        acquire(name)


def release(name):
    if client().get("reserve") == name:
        client().delete("reserve")


def add(name, amount, seconds):
    acquire(name)
    reserve = Reserve.objects.get(pk=1)
    time.sleep(seconds)
    ensure(name)
    Reserve.objects.filter(pk=1).update(balance=reserve.balance + amount)
    release(name)


def add_if_unchanged(name, amount, seconds):
    acquire(name)
    while True:
        reserve = Reserve.objects.get(pk=1)
        time.sleep(seconds)
        ensure(name)
        if Reserve.objects.filter(pk=1, version=reserve.version).update(
            balance=reserve.balance + amount, version=F("version") + 1
        ):
            break
    release(name)


def both(operation, seconds):
    return [worker("batch", operation, "batch", 10, seconds), worker("deposit", operation, "deposit", 50, 0)]


LAW = (lambda batch, deposit: Reserve.objects.get().balance == 160, "a deposit is gone")

POLLS = "its waiter polls once a second"

CASE = Case(
    source="swarthy/redis-semaphore#175; ad hoc transactions (Tang et al., SIGMOD 2022)",
    setup=one_reserve,
    invariant=LAW,
    broken=[
        Form(name="taken again", workers=both(add, 60), verdict=VIOLATED, untimed="60 s a try"),
        Form(
            name="taken again after a pause",
            workers=both(add, 0),
            faults={"pauses": 1},
            needs="pause",
            untimed=POLLS,
            verdict=VIOLATED,
        ),
    ],
    mended=[
        Form(name="the version decides", workers=both(add_if_unchanged, 60), untimed="60 s a try"),
        Form(
            name="the version decides, under a pause",
            workers=both(add_if_unchanged, 0),
            mends="taken again after a pause",
            untimed=POLLS,
            faults={"pauses": 1},
        ),
    ],
    cure="lease and fence",
)
