"""The card of one lock: the results of a swarm, of every order of its commands and of every hazard, and the answer.

    compare.json ─┐
    explore.json ─┼─→ a row for each hazard, an answer in one sentence, the smallest schedule that loses
    faults.json ──┘

The answer is about money, not about claims: a lock that does not claim to survive a pause is honest, but it cannot be
trusted with money alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.markup import escape
from rich.table import Table

from loadtest.findings.brief import brief
from loadtest.report.explorer_table import how_again
from loadtest.report.terminal import WORD_STYLES
from loadtest.verdict.words import Word, gravest
from locks.hazards import Hazard

#: the commands whose files are read, in the order in which they run: a lock that fails early is reported early
JUDGING_COMMANDS = ("compare", "explore", "faults")
#: what the signs of the table mean
SIGNS = "· not applicable, or not tried by this command. ! contradicts the claim."
AGAIN = "Give the explorer more time (--budget), or run the hazard again."


@dataclass(frozen=True)
class HazardRow:
    """One hazard, with the words of both commands. "": unknown to the command, or it cannot touch the lock."""

    hazard: str
    claimed: bool
    explored: str
    done: str

    @property
    def word(self) -> Word | None:
        """Return the graver word of the two, or None if there is none."""
        said = [Word(word) for word in (self.explored, self.done) if word]
        return gravest(said)

    @property
    def contradicts(self) -> bool:
        return self.claimed and self.word not in (None, Word.KEPT, Word.INCONCLUSIVE)


@dataclass(frozen=True)
class Card:
    """What is known about one lock. `smallest`: the explorer's counterexample, if there is one."""

    strategy: str
    rows: Sequence[HazardRow]
    load: Mapping[str, Any]
    search: Mapping[str, Any]
    smallest: Mapping[str, Any] | None

    def under(self, *words: Word) -> list[str]:
        """Return the hazards whose gravest word is one of these."""
        return [row.hazard for row in self.rows if row.word in words]

    @property
    def losing(self) -> list[str]:
        return self.under(*(word for word in Word if word.breaks_the_law))

    @property
    def stuck(self) -> bool:
        """Does it stall without any fault? Then it also does so under each hazard."""
        return Hazard.CONTENTION in self.under(Word.STALLED)

    def answer(self) -> list[str]:
        """Return the answer and its details, one sentence each."""
        told = [self._verdict()]
        idle = self.under(Word.STALLED, Word.REFUSED)
        if idle and not self.stuck:
            told.append(
                f"It stalls or refuses under {_listed(idle)}: no money is lost, but none can be moved."
            )
        if undecided := self.under(Word.INCONCLUSIVE):
            told.append(f"Undecided: {_listed(undecided)}. {AGAIN}")
        if not self.search.get("under") and (why := self.search.get("cause") or self.search.get("reason")):
            told.append(f"The explorer decided nothing: {why}.")
        if broken := [row.hazard for row in self.rows if row.contradicts]:
            told.append(f"It claims to withstand {_listed(broken)}, and does not.")
        return told

    def _verdict(self) -> str:
        if Hazard.CONTENTION in self.losing:
            return "No. Two concurrent callers are enough: it loses money without any fault."
        if self.stuck:
            also = f" And it loses money under {_listed(self.losing)}." if self.losing else ""
            return f"No. It stalls without any fault: does each holder release it?{also}"
        if self.losing:
            return (
                f"Not alone. It loses money under {_listed(self.losing)}. Let the store have the last word: "
                "docs/choosing.md says how."
            )
        found = [row for row in self.rows if row.word is not None]
        if not found or all(row.word is Word.INCONCLUSIVE for row in found):
            return "Unknown: nothing was decided."
        search = f"{self.search['schedules']:,} schedules" if self.search.get("schedules") else "0 schedules"
        whole = ", all that exist within the bounds" if self.search.get("exhausted") else ""
        return f"It lost no money in {search}{whole}, and {len(found)} hazards."

    def schedule(self) -> list[str]:
        """Return the smallest schedule that breaks it, in sentences, or [] if none was found."""
        told = brief(self.smallest) if self.smallest else []
        return [each.replace("**", "").replace("`", "") for each in told]

    def as_json(self) -> dict[str, Any]:
        rows = [
            {**asdict(row), "word": row.word and str(row.word), "contradicts": row.contradicts}
            for row in self.rows
        ]
        return {
            "strategy": self.strategy,
            "answer": self.answer(),
            "loses_under": self.losing,
            "stands_still_under": self.under(Word.STALLED, Word.REFUSED),
            "undecided": self.under(Word.INCONCLUSIVE),
            "rows": rows,
            "load": self.load,
            "schedule": self.schedule(),
            "replay": (self.smallest or {}).get("id", ""),
        }


def card(strategy: str, reports: Mapping[str, Mapping[str, Any]]) -> Card:
    """Return the card of `strategy` from the files of the three commands: {"compare": …, "explore": …, "faults": …}."""
    swarm = _of(reports["compare"], strategy)[0]
    search = _of(reports["explore"], strategy)[0]
    load = {name: swarm.get(name) for name in ("verdict", "ops_per_s", "latency_ms", "lost_amount")}
    rows = tuple(_rows(swarm, search, _of(reports["faults"], strategy)))
    return Card(strategy, rows, load, search, search.get("counterexample"))


def report_of(
    strategies: Sequence[str], reports: Mapping[str, Mapping[str, Any]], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the contents of `trust.json`. `options`: the options of the command, without the strategies."""
    first, last = reports[JUDGING_COMMANDS[0]], reports[JUDGING_COMMANDS[-1]]
    return {
        "command": "trust",
        "started": first.get("started"),
        "ended": last.get("ended"),
        "stopped": any(each.get("stopped") for each in reports.values()),
        "environment": first.get("environment", {}),
        "options": {"strategies": list(strategies), **options},
        "results": [card(each, reports).as_json() for each in strategies],
    }


def _rows(
    swarm: Mapping[str, Any], search: Mapping[str, Any], cells: Iterable[Mapping[str, Any]]
) -> Iterator[HazardRow]:
    explored = {name: word for name, word in search.get("under", {}).items() if word != Word.NOT_RUN}
    done = {str(Hazard.CONTENTION): swarm, **{each["hazard"]: each for each in cells}}
    for hazard in dict.fromkeys([*done, *explored]):
        found = done.get(hazard, {"verdict": Word.NOT_RUN})
        word = "" if found["verdict"] == Word.NOT_RUN else str(found["verdict"])
        claimed = bool(found.get("claimed", hazard in search.get("claims", ())))
        if word or hazard in explored:
            yield HazardRow(hazard, claimed, explored.get(hazard, ""), word)


def _of(report: Mapping[str, Any], strategy: str) -> list[Mapping[str, Any]]:
    """Return the strategy's results in `report`. Raises ValueError if there are none: the run was stopped before."""
    found = [each for each in report["results"] if each["strategy"] == strategy]
    if not found:
        raise ValueError(f"{report['command']} has no result for {strategy}")
    return found


def _listed(hazards: Sequence[str]) -> str:
    return ", ".join(hazards[:-1]) + " and " + hazards[-1] if len(hazards) > 1 else hazards[0]


def table(card: Card) -> Table:
    """Return a row for each hazard that touches the lock: the claim and the findings. `!` contradicts the claim."""
    drawn = Table(title=escape(f"Can I trust {card.strategy} with money?"), title_justify="left")
    for heading in ("hazard", "claimed", "explorer", "faults"):
        drawn.add_column(heading, no_wrap=True)
    for row in card.rows:
        mark = " [bold red]![/]" if row.contradicts else ""
        drawn.add_row(row.hazard, "yes" if row.claimed else "", _word(row.explored), _word(row.done) + mark)
    return drawn


def sentences(card: Card) -> Iterator[str]:
    """Yield the answer, and the smallest schedule that loses money or stalls."""
    yield SIGNS
    yield from card.answer()
    if rate := card.load["ops_per_s"]:
        yield f"Load test: {rate:,.0f} postings/s, p99 {card.load['latency_ms']['p99']:,.0f} ms."
    yield "What each hazard is: docs/reference.md#hazards"
    if card.smallest:
        yield "The smallest schedule:"
        yield from (f"  {number}. {told}" for number, told in enumerate(card.schedule(), 1))
        yield f"  {how_again(card.smallest)}"


def _word(word: str) -> str:
    return f"[{WORD_STYLES[word]}]{word}[/]" if word else "[dim]·[/]"
