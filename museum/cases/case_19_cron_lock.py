"""Violated: interest is paid twice, because two hosts take over a lock row that has expired.

Each host runs the nightly job. A row is the lock, and it has an expiry, because a host may die. Who finds it expired
deletes it and inserts its own. The second host deletes by the name as well, but by now it is the first one's fresh row.

    host 1                               host 2
    get → expired
                                         get → expired
    delete, insert its own
                                         delete: host 1's row; insert its own
    pay interest
                                         pay interest

Mended: one conditional UPDATE takes the row over, "where it has expired"; it can succeed once.
"""

from __future__ import annotations

import time

from django.db import IntegrityError, models

from lost_update_lab import worker
from museum.case import VIOLATED, Case, Form


class JobLock(models.Model):
    name = models.CharField(max_length=20, primary_key=True)
    host = models.CharField(max_length=20)
    expires = models.FloatField()


class InterestRun(models.Model):
    host = models.CharField(max_length=20)


def an_expired_lock():
    JobLock.objects.create(name="interest", host="host 0", expires=0)


def nightly(host):
    lock = JobLock.objects.filter(name="interest").first()
    if lock and lock.expires > time.time():
        return "another host has it"
    if lock:
        lock.delete()
    try:
        JobLock.objects.create(name="interest", host=host, expires=time.time() + 3600)
    except IntegrityError:
        return "another host has it"
    InterestRun.objects.create(host=host)
    return "paid"


def nightly_taken_over(host):
    now = time.time()
    free = JobLock.objects.filter(name="interest", expires__lt=now)
    if not free.update(host=host, expires=now + 3600):
        return "another host has it"
    InterestRun.objects.create(host=host)
    return "paid"


def hosts(operation):
    return [worker("host 1", operation, "host 1"), worker("host 2", operation, "host 2")]


CASE = Case(
    source="naiba/bonds#89",
    setup=an_expired_lock,
    invariant=(lambda: InterestRun.objects.count() <= 1, "interest was paid twice in one night"),
    broken=[Form(name="delete, then insert", workers=hosts(nightly), verdict=VIOLATED)],
    mended=[Form(name="conditional UPDATE", workers=hosts(nightly_taken_over), faults={"crashes": 1})],
    cure="conditional UPDATE",
)
