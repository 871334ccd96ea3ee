"""Races by gates: real strategies in threads that stop exactly where a test says. See race.py."""

from tests.ledger.race.race import Race
from tests.ledger.race.worker import Killed, State, Worker

__all__ = ["Killed", "Race", "State", "Worker"]
