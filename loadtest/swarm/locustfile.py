"""The swarm: users that post to one book over HTTP. Works like any Locust file:

    locust -f loadtest/swarm/locustfile.py --host http://127.0.0.1:8000            (web UI on port 8089)
    locust -f loadtest/swarm/locustfile.py --host … --headless -u 20 -t 10s --strategy setnx --processes 2

Each test opens a new book and reconciles it at the end. The exit code is 1 if money was lost or created. Every
operation has a new Idempotency-Key. An operation whose outcome is unknown (no answer, 5xx) is recorded as `info` and is
**not** repeated: a retry would hide from the judge what a real time-out leaves open. HTTP only: nothing here uses
Django.
"""

from __future__ import annotations

import os
import random
import socket
import sys
import uuid
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any

import gevent
from gevent import GreenletExit
from locust import FastHttpUser, constant, events, task
from locust.exception import StopUser
from locust.runners import MasterRunner, WorkerRunner

sys.path.append(str(Path(__file__).resolve().parents[2]))  # Locust may be started from anywhere

from ledger.reconcile import ClientOutcome
from loadtest.history.journal import Journal
from loadtest.swarm.answers import look, outcome_of
from loadtest.swarm.bank import headers
from loadtest.swarm.conductor import Conductor
from loadtest.swarm.gate import Gate
from loadtest.swarm.options import DEFAULT_HOST, WARM_UP_ACCOUNTS, add_arguments, workload_of
from loadtest.swarm.panel import extend

events.init_command_line_parser.add_listener(add_arguments)


STOP_TIMEOUT = 5.0
BUSY = 503


GATE = Gate()


@events.init.add_listener
def set_up(environment: Any, runner: Any, **_: Any) -> None:
    """Set up the master's side, the users' side, or both, depending on this process."""
    options = environment.parsed_options
    environment.host = environment.host or DEFAULT_HOST
    # Users finish what they began. Not longer, because until then a worker accepts no new test.
    environment.stop_timeout = environment.stop_timeout or STOP_TIMEOUT
    Teller.network_timeout = Teller.connection_timeout = options.deadline
    if not isinstance(runner, WorkerRunner):
        run_time = options.seconds or None
        if (
            options.headless and options.run_time
        ):  # ours counts from the "go"; Locust's would count from the start of the spawning
            run_time, options.run_time = options.run_time, None
        conductor = Conductor(environment, run_time)
        runner.register_message("lab_ready", conductor.on_ready)
        runner.register_message("lab_done", conductor.on_done)
        events.test_start.add_listener(conductor.test_start)
        events.test_stop.add_listener(conductor.test_stop)
        events.quitting.add_listener(conductor.test_stop)
        if environment.web_ui:
            extend(environment, conductor)
        elif options.expect_workers and isinstance(runner, MasterRunner):
            conductor.await_workers(options.expect_workers)
    if not isinstance(runner, MasterRunner):
        runner.register_message("lab_go", GATE.on_go)
        events.test_start.add_listener(GATE.close)


class Teller(FastHttpUser):
    """One user: its own keys, its own random numbers, one posting after the other."""

    wait_time = constant(0)
    _numbers = count(1)

    def on_start(self) -> None:
        options = self.environment.parsed_options
        if not options.opened_book:
            raise GreenletExit  # like StopUser, for which Locust would print a traceback here, for each user
        number = next(self._numbers)
        self.name = f"{socket.gethostname()}:{os.getpid()}:user-{number}"
        self.run_id = uuid.uuid4().hex[:12]
        self.dice = random.Random(f"{options.opened_book}:{self.name}")  # noqa: S311  (no secret)
        self.workload = workload_of(options)
        self.keys = count(1)
        self.done = 0
        self.totals = {"ok": 0, "fail": 0, "info": 0, "acknowledged": 0}
        self.by_itself = False
        self.journal = Journal(options.history) if options.history else None
        self.book = f"/api/books/{options.opened_book}"
        self.url = f"{self.book}/postings"
        self.warm_up(options.opened_warm_up)
        self.environment.runner.send_message("lab_ready", {"users": 1})
        if options.start == "together":
            GATE.opened.wait()
        self.started = monotonic()  # each user counts its own time, so that a late one is not cut short

    def warm_up(self, book: str) -> None:
        """Open this user's connection, and one of the server's connections to its databases, on a scratch book."""
        url = f"/api/books/{book}/postings"
        body = {"account": f"A{self.dice.randint(1, WARM_UP_ACCOUNTS):04d}", "amount": 1}
        with self.client.post(
            url, json=body, headers=self.headers("warm-up"), name="warm-up", catch_response=True
        ) as answer:
            answer.success()

    def headers(self, key: str) -> dict[str, str]:
        return {**headers(), "Idempotency-Key": f"{self.run_id}-{key}"}

    def is_done(self) -> bool:
        """Whether the user is done: after `--iterations` operations; or when its time is over and it has done
        `--at-least` operations, for which it gets up to one deadline more."""
        options = self.environment.parsed_options
        if options.iterations and self.done >= options.iterations:
            return True
        late = monotonic() - self.started - GATE.seconds
        return late >= 0 and (self.done >= options.at_least or late >= options.deadline)

    @task
    def post(self) -> None:
        """Make one posting. Record it before it is sent, and again when its outcome is known."""
        if self.is_done():
            self.by_itself = True
            raise StopUser
        self.done += 1
        legs = self.workload.posting(self.dice)
        if legs is None:
            self.by_itself = True
            raise StopUser
        sent = self.headers(str(next(self.keys)))
        key = sent["Idempotency-Key"]
        self.await_due()
        if not legs:
            self.look(key)
            return
        if self.journal:
            self.journal.invoke(key, legs, self.name)
        self.totals["info"] += 1  # unknown until there is an answer
        outcome, said = self.ask(legs, sent)
        self.totals["info"] -= 1
        self.totals[outcome.value] += 1
        if outcome is ClientOutcome.OK:
            self.totals["acknowledged"] += sum(amount for _, amount in legs)
        if self.journal:
            self.journal.complete(key, outcome, **said)

    def await_due(self) -> None:
        """Wait until the operation is due. Most are due at once; a scheduler's are not."""
        early = self.started + self.workload.due() - monotonic()
        if early > 0:
            gevent.sleep(early)

    def look(self, key: str) -> None:
        """Read, change nothing, and record what was seen."""
        what = self.workload.look(self.dice)
        if self.journal:
            self.journal.invoke(key, (), self.name, look=what)
        outcome, said = look(self.client, self.book + what, self.workload.seen)
        if self.journal:
            self.journal.complete(key, outcome, **said)

    def ask(self, legs: Any, sent: dict[str, str]) -> tuple[ClientOutcome, dict[str, Any]]:
        """Send the posting. Return its outcome, and what else to record."""
        lines = [{"account": account, "amount": amount} for account, amount in legs]
        body = lines[0] if len(lines) == 1 else {"lines": lines}
        with self.client.post(
            self.url, json=body, headers=sent, name="posting", catch_response=True
        ) as answer:
            outcome, said = outcome_of(answer)
            if outcome is ClientOutcome.OK:
                answer.success()
                return outcome, {"retries": said.get("retries", 0)}
            error = str(said.get("detail") or f"{answer.status_code} {answer.error or ''}".strip())
            answer.failure(f"{outcome.value}: {error}")
            return outcome, {"busy": answer.status_code == BUSY, "error": error}

    def on_stop(self) -> None:
        if not hasattr(self, "totals"):
            return  # it never started
        if self.journal:
            self.journal.close()
        self.environment.runner.send_message("lab_done", {"totals": self.totals, "by_itself": self.by_itself})
