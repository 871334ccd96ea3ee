"""Stalled: nobody gets the lock any more, because a pooler has put its release on another session.

A session advisory lock belongs to the database session. Behind a pooler in transaction mode each transaction may run on
another session. The lock is taken on one, the work is done on the next, and the release reaches a session that does not
hold it: it returns false, nobody looks, and the lock stays as long as that session lives.

    Ann                                  Bob
    session 1: pg_advisory_lock
    session 2: the work
    session 1 or 2: pg_advisory_unlock → false
                                         pg_advisory_lock: waits for ever

The pooler here is two sessions of the worker, in turns. Behind a real PgBouncer the same session may be granted the
lock twice, and money is lost: hazard `transaction-pooler` of `manage.py faults`, strategy `advisory-lock-session`.

Mended: `pg_advisory_xact_lock`, in the transaction that it protects. It ends with it, wherever that runs.
"""

from __future__ import annotations

import os
import threading

import psycopg
from django.db import models

from lost_update_lab import worker
from museum.case import STALLED, Case, Form

LOCK = 27


class Job(models.Model):
    done = models.IntegerField(default=0)


def one_job():
    Job.objects.create()


class Pooler(threading.local):
    """Each transaction goes to the next of its sessions."""

    def __init__(self):
        self.sessions = []

    def transaction(self):
        while len(self.sessions) < 2:
            self.sessions.append(psycopg.connect(os.environ["DATABASE_URL"]))
        self.sessions.reverse()
        return self.sessions[0].transaction()

    def execute(self, query, *values):
        return self.sessions[0].execute(query, values).fetchone()


pooler = Pooler()


def work():
    (done,) = pooler.execute("SELECT done FROM museum_job WHERE id = 1")
    pooler.execute("UPDATE museum_job SET done = %s WHERE id = 1 RETURNING done", done + 1)


def run():
    with pooler.transaction():
        pooler.execute("SELECT pg_advisory_lock(%s)", LOCK)
    with pooler.transaction():
        work()
    with pooler.transaction():
        pooler.execute("SELECT true")
    with pooler.transaction():
        pooler.execute("SELECT pg_advisory_unlock(%s)", LOCK)


def run_in_one():
    with pooler.transaction():
        pooler.execute("SELECT pg_advisory_xact_lock(%s)", LOCK)
        work()


CASE = Case(
    source="goauthentik/authentik#23876",
    setup=one_job,
    invariant=(lambda ann, bob: Job.objects.get().done == 2, "a run is gone"),
    broken=[
        Form(
            name="a session lock",
            workers=[worker("Ann", run), worker("Bob", run)],
            invariant=(lambda: Job.objects.get().done <= 2, "more runs than there were"),
            verdict=STALLED,
            untimed="it hangs",
        )
    ],
    mended=[
        Form(name="a transaction's lock", workers=[worker("Ann", run_in_one), worker("Bob", run_in_one)])
    ],
    cure="lock before read",
)
