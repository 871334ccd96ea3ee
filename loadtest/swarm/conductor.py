"""The master's side of a run: it opens a new book, starts all users together, and reconciles when all are done.

    users    warm up … ready ┐                 ┌ post, post, post … done ┐
    master   open the book   └ all ready → go! ┘                         └ all done → reconcile → exit code

Users end by themselves (`--run-time` counts from the "go", not from the spawning), so nothing is in flight when the
books are read. Locust's own messages carry the words, so this works the same way with one process, with `--processes`,
and with `--master`/`--worker` on many machines.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import gevent

from ledger.names import WARM_UP
from loadtest.swarm.bank import Bank, BankError
from loadtest.swarm.live import Live
from loadtest.swarm.options import REPORT, WARM_UP_ACCOUNTS, settings_of, workload_of
from loadtest.swarm.rows import rows

log = logging.getLogger(__name__)
LOST, BAD_USAGE, INCONCLUSIVE = 1, 2, 3
#: seconds that a user may need to get ready before the others go without it
PATIENCE = 45.0


class Conductor:
    """One for each Locust environment, except those that only work for a master."""

    def __init__(self, environment: Any, run_time: float | None) -> None:
        self.environment, self.run_time = environment, run_time
        self.books: dict[str, Any] = {}
        self.totals: Counter[str] = Counter()
        self.ready = self.done = 0
        self.gone = self.judged = True  # nothing runs yet
        self.looked: dict[str, Any] | None = None
        self.live = Live()

    @property
    def bank(self) -> Bank:
        return Bank(self.environment.host)

    def await_workers(self, wanted: int, patience: float = 5.0) -> None:
        """Wait for the workers. Locust checks only once a second; this checks more often."""
        with gevent.Timeout(patience, False):
            while len(self.environment.runner.clients.ready) < wanted:
                gevent.sleep(0.02)

    # -- before -----------------------------------------------------------------------------------------------

    def test_start(self, **_: Any) -> None:
        """Open the books. Their ids reach the workers with the options that Locust sends them."""
        options = self.environment.parsed_options
        self.books, self.totals, self.looked = {}, Counter(), None
        self.ready = self.done = 0
        self.gone = self.judged = False
        options.opened_book = options.opened_warm_up = ""  # forget those of the previous test
        try:
            options.opened_book = options.book or self._open(options, workload_of(options).openings())
            options.opened_warm_up = options.warm_up_book or self._open(options, None)
        except Exception as error:  # noqa: BLE001  (Locust would log it and wait for ever)
            self._give_up(error)
        else:
            gevent.spawn_later(PATIENCE, self._go_anyway, options.opened_book)

    def _open(self, options: Any, openings: Any) -> str:
        settings = settings_of(options)
        if openings is None:
            return self.bank.open_book(
                strategy=options.strategy, name=WARM_UP, count=WARM_UP_ACCOUNTS, settings=settings
            )
        accounts = [{"account": o.account, "opening": o.opening, "floor": o.floor} for o in openings]
        return self.bank.open_book(
            strategy=options.strategy, name="swarm", accounts=accounts, settings=settings
        )

    def _give_up(self, error: Exception) -> None:
        log.error("The test cannot start: %s", error)
        self.books = {"error": str(error)}
        self.judged = True
        options = self.environment.parsed_options
        options.opened_book = options.opened_warm_up = ""
        if not self.environment.web_ui:
            self.environment.process_exit_code = BAD_USAGE
            gevent.spawn(self.environment.runner.quit)
        else:
            gevent.spawn_later(0.1, self.environment.runner.stop)

    # -- during -----------------------------------------------------------------------------------------------

    def on_ready(self, msg: Any, **_: Any) -> None:
        """A user has warmed up. When all have: go."""
        self.ready += msg.data["users"]
        if self.ready >= (self.environment.runner.target_user_count or 0):
            self.go()

    def _go_anyway(self, book: str) -> None:
        if not self.gone and book == self.environment.parsed_options.opened_book:
            log.warning("only %d users are ready after %g s: the others start late", self.ready, PATIENCE)
            self.go()

    def go(self) -> None:
        """Tell every process that its users may start."""
        if self.gone:
            return
        self.gone = True
        options = self.environment.parsed_options
        self.environment.runner.send_message("lab_go", {"seconds": self.run_time})
        if self.environment.web_ui:
            book = options.opened_book
            self.live.begin(lambda: self.bank.reconcile(book))
        if options.look:
            gevent.spawn_later(options.look, self._look, options.look)
        if self.run_time:  # do not wait for users that hang past their deadline
            patience = 2 * options.deadline + PATIENCE
            gevent.spawn_later(self.run_time + patience, self._finish, options.opened_book)

    def _look(self, seconds: float) -> None:
        """Read the balance after a fixed time, as the hot-account article did (A9)."""
        try:
            balance = self.bank.balance(self.environment.parsed_options.opened_book)
        except BankError as error:
            log.warning("The balance cannot be read: %s", error)
            return
        unfinished = (self.environment.runner.target_user_count or 0) - self.done
        self.looked = {
            "after_s": seconds,
            "balance": balance,
            "finished": self.done,
            "unfinished": unfinished,  # users; their work is not lost, it is just not done yet
        }

    def on_done(self, msg: Any, **_: Any) -> None:
        """A user is done. When all are: finish."""
        self.totals.update(msg.data["totals"])
        self.done += 1
        if msg.data["by_itself"] and self.done >= (self.environment.runner.target_user_count or 0):
            gevent.spawn(self._finish, self.environment.parsed_options.opened_book)

    def _finish(self, book: str) -> None:
        if self.judged or book != self.environment.parsed_options.opened_book:
            return
        if self.looked is None and self.environment.parsed_options.look:
            gevent.sleep(self.environment.parsed_options.look)
        if self.environment.web_ui:
            self.environment.runner.stop()
        else:
            self.environment.runner.quit()

    # -- after ------------------------------------------------------------------------------------------------

    def test_stop(self, **_: Any) -> None:
        """Reconcile, once for each run. After Ctrl-C in the web UI Locust fires `quitting` first: both lead here."""
        if self.judged:
            return
        self.judged = True
        options = self.environment.parsed_options
        try:
            strategy = self.bank.book(options.opened_book)["book"]["strategy"]
            self.books = {"strategy": strategy, **self.bank.reconcile(options.opened_book)}
        except BankError as error:
            log.error("The books cannot be read: %s", error)
            self.books = {"error": str(error)}
            self._exit_with(INCONCLUSIVE)
            return
        finally:
            self.live.end(self.books.get("lost_amount"))
        lost, created = self.books["lost_amount"], self.books["created_amount"]
        nothing = not self.books["acknowledged_operations"]
        self._exit_with(LOST if lost or created else INCONCLUSIVE if nothing else 0)
        log.info("%s: %s", options.opened_book, "; ".join(f"{n}: {v}" for n, v in self.rows()))
        if options.history:
            report = {"book": options.opened_book, "looked": self.looked, "totals": dict(self.totals)}
            half = Path(options.history, REPORT + ".tmp")
            half.write_text(json.dumps(report))
            half.replace(half.with_suffix(""))  # atomic: a reader sees the whole file or none

    def _exit_with(self, code: int) -> None:
        """Set the exit code. Several tests may run from one web page: if any lost money, the exit code says so."""
        if self.environment.process_exit_code != LOST:
            self.environment.process_exit_code = code

    def rows(self) -> list[tuple[str, Any]]:
        """Return the rows of the web page's tab."""
        live = [("Lost so far", self.live.told())] if self.environment.web_ui else []
        return [*rows(self.books, self.totals), *live]
