"""A schedule as text: the user's line, the commands that it sent, what came back and what changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from lost_update_lab.scenarios.schedule import Move, Schedule


def order(schedule: Schedule) -> list[str]:
    """One paragraph for each line of the user's code, with the commands that it sent."""
    width = max([len(move.who) for move in schedule.moves], default=0)
    told: list[str] = []
    for (who, line), moves in groupby(_without_rests(schedule.moves), key=lambda move: (move.who, move.line)):
        told += _paragraph(who.ljust(width), line, list(moves))
    return told


def _without_rests(moves: Iterable[Move]) -> Iterator[Move]:
    return (move for move in moves if not (move.command.startswith("begin") and not move.reply))


def _paragraph(who: str, line: str, moves: list[Move]) -> Iterator[str]:
    blank = " " * len(who)
    if line:
        yield f"{who}  {line}  {moves[0].source}"
    for number, move in enumerate(moves):
        mark = "↯ " if move.is_fault else ""
        lead = blank if line or number else who
        time = f"[{move.at:g} s] " if move.at else ""
        reply = f"  → {move.reply}" if move.reply else ""
        yield f"{lead}      {time}{mark}{move.command}{reply}"
        yield from (f"{blank}        {change}" for change in move.changes)
